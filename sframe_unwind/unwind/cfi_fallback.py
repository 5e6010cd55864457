"""The step by DWARF CFI, for frames that SFrame does not cover and whose unwinder is ours: no debugger does it then."""

from __future__ import annotations

from typing import Callable

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiMatch
from sframe_unwind.errors import StepError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind.walk import Registers, UnwindResult
from sframe_unwind.unwind_rule import UNDEFINED

NAME = "dwarf"
"""What these frames' unwinder is called."""


class CfiFallback:
    """Unwinds frames by DWARF CFI.

    :param find: finds what CFI says of a lookup address, ``None`` where it says nothing; raises :class:`SFrameError`.
    :param pac_mask: see :func:`sframe_unwind.unwind.step.step`.
    """

    def __init__(
        self,
        arch: Arch,
        find: Callable[[int], CfiMatch | None],
        read_word: ReadWord,
        pac_mask: int | None = None,
    ) -> None:
        self._arch = arch
        self._find = find
        self._read_word = read_word
        self._pac_mask = pac_mask

    def unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None
    ) -> UnwindResult | None:
        """Return the caller of a frame, ``None`` where CFI does not know it.

        :param interrupted: pc is where the frame goes on, not a return address.
        :param read_register: reads the frame's other registers, as far as they are known.
        :raises SFrameError: there is CFI, but it cannot be carried out.
        """
        pc, sp, fp = registers
        found = self._find(lookup_address(pc, interrupted))
        if found is None:
            return None
        rule, signal = found
        if rule.ra_undefined:
            return UnwindResult(None, False, None, NAME)
        if rule.ra is None and not interrupted:
            raise StepError(f"the CFI at {pc:#x} has the return address in its register, which calls overwrite")
        if rule.fp == UNDEFINED:
            rule = rule._replace(fp=None)  # as libgcc has it: whoever wants it finds what the callee left
        caller = step(rule, self._arch, sp, fp, self._read_word, read_register, self._pac_mask)
        return UnwindResult(caller, signal, None, NAME)
