"""Unwinds frames by DWARF CFI, for frames without SFrame data that no debugger unwinds."""

from __future__ import annotations

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import FindCfi
from sframe_unwind.errors import StepError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind.walk import Registers, UnwindResult
from sframe_unwind.unwind_rule import UNDEFINED

NAME = "dwarf"
"""Name of this unwinder in stacks."""


class CfiFallback:
    """Unwinds frames by DWARF CFI.

    :param find: finds the CFI for a lookup address.
    :param pac_mask: see :func:`sframe_unwind.unwind.step.step`.
    """

    def __init__(
        self,
        arch: Arch,
        find: FindCfi,
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
        """Return the caller of a frame; ``None``: no CFI describes the address.

        :param interrupted: the pc is not a return address; see :func:`sframe_unwind.address.lookup_address`.
        :param read_register: reads the other registers of the frame; ``None``: they are not known.
        :raises SFrameError: CFI describes the address, but the step fails.
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
            rule = rule._replace(fp=None)  # libgcc does the same: an undefined register keeps the callee's value
        caller = step(
            rule=rule,
            arch=self._arch,
            sp=sp,
            fp=fp,
            read_word=self._read_word,
            read_register=read_register,
            pac_mask=self._pac_mask,
        )
        return UnwindResult(caller, signal, None, NAME)
