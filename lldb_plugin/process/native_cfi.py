"""The CFI by which LLDB's own unwinder may unwind: `.eh_frame` in memory, and `.debug_frame` of the files.

`.debug_frame` counts only against SFrame that differs from it.  Where both give the same caller, LLDB's frames are
compared with SFrame's one by one, because an LLDB that was built without Zstandard cannot read a compressed section.

LLDB 22 to 24 look `.debug_frame` up by the function or the symbol that contains the pc, and take the first FDE in its
range (`RegisterContextUnwind::GetFullUnwindPlanForFrame`, `FuncUnwinders::GetDebugFrameUnwindPlan`).  They search
`.eh_frame` alone by the pc.  A stripped program has no symbols but those that LLDB makes from `.eh_frame`, and the last
of these reaches to the end of `.text`.  There, LLDB unwinds by the instructions, or by the frame pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Callable

import lldb

from lldb_plugin.interface.telling import Report
from lldb_plugin.process.memory import build_id_of
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.modules import TEXT
from sframe_unwind.errors import UnsupportedExpressionError
from sframe_unwind.unwind.modules import Found, Module, Modules

if TYPE_CHECKING:
    from sframe_unwind.cfi.section import CfiMatch, PlacedCfi


_SECTION = ".debug_frame"
"""LLDB does not know the old name of compressed sections, `.zdebug_frame`."""


class DebugFrames:
    """The `.debug_frame` of a module, in its file or in its separate debug file.

    :param files: the files in which LLDB may have found the section.
    :param text: `.text`, which LLDB has loaded.
    :param start: its address in the process.
    """

    def __init__(
        self, module: lldb.SBModule, files: Sequence[DebugFile], text: lldb.SBSection, start: int, arch: Arch
    ) -> None:
        self._module = module
        self._files = files
        self._text = start, start + text.GetByteSize()
        self._bias = start - text.GetFileAddress()
        self._arch = arch

    @cached_property
    def opened(self) -> Sequence[PlacedCfi]:
        """The sections that can be used, opened on first use."""
        from sframe_unwind.debugger.debug_frame import placed_by_sections  # few modules have such a section

        return placed_by_sections(self._files, self._arch, {TEXT: self._text})

    @cached_property
    def _is_compressed(self) -> bool:
        from sframe_unwind.debugger.debug_frame import is_beyond_this_python

        return is_beyond_this_python(self._files, self._arch)

    def covering(self, pc: int) -> PlacedCfi | None:
        """Return the section by which LLDB unwinds from a lookup address; this waits for no lock on the target."""
        found = next((cfi for cfi in self.opened if cfi.covers(pc)), None)
        if found is None:
            return None
        start = self._start_of_function(pc)
        return found if start is not None and found.find(start) == found.find(pc) else None

    def hides(self, pc: int) -> bool:
        """Return whether LLDB can decompress CFI for a lookup address that this Python cannot.

        LLDB is asked for debug information, which is compressed in the same way; this waits for no lock on the target.
        """
        return self._is_compressed and bool(self._resolve(pc).GetFunction().IsValid())

    def _start_of_function(self, pc: int) -> int | None:
        """Return where the symbol or function that contains an address starts; ``None``: LLDB knows none."""
        address = self._resolve(pc)
        symbol = address.GetSymbol()
        found = symbol if symbol.IsValid() else address.GetFunction()
        return int(found.GetStartAddress().GetFileAddress()) + self._bias if found.IsValid() else None

    def _resolve(self, pc: int) -> lldb.SBAddress:
        return self._module.ResolveFileAddress(pc - self._bias)


def debug_frames_of(module: lldb.SBModule, target: lldb.SBTarget, arch: Arch) -> DebugFrames | None:
    """Return the `.debug_frame` of a module; ``None``: LLDB has found none, or has not loaded the module."""
    text = module.FindSection(TEXT)
    start = int(text.GetLoadAddress(target)) if text.IsValid() else lldb.LLDB_INVALID_ADDRESS
    if start == lldb.LLDB_INVALID_ADDRESS or not module.FindSection(_SECTION).IsValid():
        return None
    known = DebugFile("", build_id_of(module))
    build_id = known.build_id if known.has_build_id() else ""
    paths = dict.fromkeys(spec.fullpath for spec in (module.GetFileSpec(), module.GetSymbolFileSpec()) if spec.fullpath)
    return DebugFrames(module, [DebugFile(path, build_id) for path in paths], text, start, arch)


class NativeCfi:
    """The CFI of the modules of a process, asked for at addresses that SFrame describes.

    :param modules: the modules, whose CFI is that in memory.
    :param find: returns the `.debug_frame` of a module.
    :param report: shows one line to the user, once.
    """

    def __init__(self, modules: Modules, find: Callable[[Module], DebugFrames | None], report: Report) -> None:
        self._modules = modules
        self._find = find
        self._report = report

    def match(self, pc: int) -> CfiMatch | None:
        """Return the CFI for a lookup address; ``None``: there is none.

        :raises UnsupportedExpressionError: LLDB has CFI, but the plugin cannot read it.
        :raises SFrameError: the CFI is malformed, or cannot be read.
        """
        found = self._modules.cfi_match(pc)
        debug = self._debug_frame(pc) if found is None else None
        return found if debug is None else debug.match(pc)

    def covers(self, pc: int) -> bool:
        """Return whether there is CFI for a lookup address.  CFI that the plugin cannot read counts, if LLDB can."""
        try:
            return self._modules.has_cfi(pc) or self._debug_frame(pc) is not None
        except UnsupportedExpressionError:
            return True

    def _debug_frame(self, pc: int) -> PlacedCfi | None:
        result = self._modules.results[pc]
        if not isinstance(result, Found):
            return None
        name, frames = result.module.name, self._find(result.module)
        if frames is None:
            return None
        covering = frames.covering(pc)
        if covering is None and frames.hides(pc):
            self._report(f"{name}: only LLDB can decompress its .debug_frame: frames that this may describe are LLDB's")
            raise UnsupportedExpressionError(f"{name}: only LLDB can decompress its CFI")
        return covering
