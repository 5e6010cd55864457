"""The frames that LLDB shows where SFrame's differ from its own.  LLDB asks for contents that are computed before.

The possible contents depend on LLDB's version.  LLDB 24 takes registers from a script, and finds variables with them as
in its own frames.  LLDB 22 and 23 crash on registers from a script: they keep a reference to a description of the
registers after they have freed it.  There, a frame has no registers; the plugin makes values of its variables
(:mod:`lldb_plugin.frames.variables`).  Every version gets such values: LLDB ends with a failure if a frame of a script
has no list of variables.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import lldb
from lldb.plugins.scripted_process import ScriptedFrame

from lldb_plugin.frames.option_parser import OptionParser
from lldb_plugin.frames.variables import Variables, unknown_object, variables
from lldb_plugin.interface.lock import acquire
from lldb_plugin.process.inlining import Scope
from lldb_plugin.version import takes_registers
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.unwind.walk import Frame

_NO_REGISTERS: dict[str, Any] = {"sets": [], "registers": []}
"""One object for all frames: LLDB frees no frame of a script."""

_PATIENCE = 1.0
"""Seconds to wait for LLDB's lock on the target."""


class SFrameFrame(ScriptedFrame):
    """A frame by SFrame, shown as one of the functions at its pc: pc, SP, FP, and the values derived from them."""

    def __init__(self, maker: FrameMaker, index: int, frame: Frame, scope: Scope) -> None:
        # The base class's constructor is not called: it waits for locks.
        self.id = index
        self.name = None
        self.register_info = maker.layout.info if maker.layout else _NO_REGISTERS
        self._maker = maker
        self._frame = frame
        self._scope = scope
        self._registers = maker.layout.pack(frame) if maker.layout else None
        self._variables: Variables | None = None

    def get_id(self) -> int:
        """Return the frame's index."""
        return self.id

    def get_pc(self) -> int:
        """Return the address at which the frame continues, in LLDB's sense: see :attr:`Scope.pc`."""
        return self._scope.pc

    def get_cfa(self) -> int:
        """Return the canonical frame address, by which LLDB 24 distinguishes frames."""
        return self._frame.cfa if self._frame.cfa is not None else self._frame.sp

    def get_symbol_context(self) -> lldb.SBSymbolContext:
        """Return function and line of the call in which the frame waits."""
        return self._scope.context

    def is_inlined(self) -> bool:
        """Return whether the function was inlined in the function of the next frame."""
        return self._scope.is_inlined

    def is_artificial(self) -> bool:
        """Return whether the frame has no counterpart on the stack."""
        return False

    def get_register_context(self) -> bytes | None:
        """Return the values of the registers as :attr:`register_info` lays them out."""
        return self._registers

    def get_variables(self, filters: lldb.SBVariablesOptions | None = None) -> lldb.SBValueList:
        """Return arguments and locals."""
        return self._known_variables().as_list()

    def get_value_for_variable_expression(self, expression: str, options: int, error: lldb.SBError) -> Any:
        """Return the value of a variable, or of a part of one as in ``a.b[2]``; ``None``: there is none."""
        name = re.match(r"[*&]*(\w+)", expression)
        values = self._known_variables().values
        value = next((value for value in values if name and value.GetName() == name[1]), None)
        if value is None or name is None:
            return None
        if name[0] != name[1]:
            value = value.Dereference() if name[0][0] == "*" else value.AddressOf()
        rest = expression[name.end() :]
        return value.GetValueForExpressionPath(rest) if rest else value

    def _known_variables(self) -> Variables:
        """Return the variables; commands ask for them, when LLDB holds none of the locks on its frames."""
        if self._variables is not None:
            return self._variables
        mutex = self._maker.target.GetAPIMutex()
        if not acquire(mutex, _PATIENCE):
            return self._maker.unknown_object
        try:
            found = variables(self._maker.target, self._maker.arch, self._maker.parser, self._frame, self._scope)
        finally:
            mutex.unlock()
        if found.is_complete:
            self._variables = found
        return found


class FrameMaker:
    """Makes the frames of one stack."""

    def __init__(self, target: lldb.SBTarget, arch: Arch, parser: OptionParser) -> None:
        self.target = target
        self.arch = arch
        self.parser = parser
        self.layout = RegisterLayout(arch) if takes_registers() else None
        self.unknown_object = unknown_object(target)

    def make(self, index: int, frame: Frame, scope: Scope) -> SFrameFrame:
        """Return the frame for LLDB to show at an index."""
        return SFrameFrame(self, index, frame, scope)


class RegisterLayout:
    """The registers of a frame, and the form in which LLDB gets them: pc, SP and FP, which SFrame gives."""

    def __init__(self, arch: Arch) -> None:
        self._pack = struct.Struct("<3Q" if arch.byteorder == "little" else ">3Q").pack
        generic = (("pc", arch.pc), ("sp", arch.sp), ("fp", arch.fp))
        registers = [
            _register(arch.register_name(number), name, number, 8 * place)
            for place, (name, number) in enumerate(generic)
        ]
        self.info: dict[str, Any] = {"sets": ["General Purpose Registers"], "registers": registers}

    def pack(self, frame: Frame) -> bytes:
        """Return the bytes of a frame's registers."""
        return self._pack(frame.pc, frame.sp, frame.fp & ADDRESS_MASK)


def _register(name: str, generic: str, number: int, offset: int) -> dict[str, Any]:
    return {
        "name": name,
        "generic": generic,
        "alt-name": generic,
        "bitsize": 64,
        "offset": offset,
        "encoding": "uint",
        "format": "hex",
        "set": 0,
        "gcc": number,
        "dwarf": number,
    }
