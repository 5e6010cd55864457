"""Unwinds the frames without SFrame data: as signal frames, by DWARF CFI, by the machine code, or by a guess."""

from __future__ import annotations

from typing import Callable

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadMemory, ReadRegister, ReadWord
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.process.target import UnwindableCode
from sframe_unwind.unwind import signal_frame
from sframe_unwind.unwind.cfi_fallback import CfiFallback
from sframe_unwind.unwind.walk import Registers, UnwindResult


class StackMemory(NamedTuple):
    """Reads the memory of a thread."""

    read: ReadMemory
    read_word: ReadWord
    """For signal frames and guesses."""
    read_frame_word: ReadWord
    """For rules of DWARF CFI."""


class Fallback:
    """Unwinds frames of one thread.

    :param history: the frames that the walk has passed.
    :param with_cfi: unwind by DWARF CFI.
    :param by_code: unwinds by the machine code if no CFI describes the frame, or the CFI is damaged; ``None``: the code
        is not used.
    :param guess: guesses the caller if nothing else describes the frame.  Its second argument tells whether the frame
        is an interrupted one without CFI.
    """

    def __init__(
        self,
        arch: Arch,
        code: UnwindableCode,
        memory: StackMemory,
        history: RegisterHistory,
        with_cfi: bool = True,
        by_code: Callable[[Registers, bool], UnwindResult | None] | None = None,
        guess: Callable[[Registers, bool], UnwindResult | None] | None = None,
    ) -> None:
        self._arch = arch
        self._code = code
        self._memory = memory
        self._history = history
        self._cfi = CfiFallback(arch, code.find_cfi, memory.read_frame_word) if with_cfi else None
        self._by_code = by_code
        self._guess = guess
        self._no_trampolines: set[int] = set()
        """Addresses whose code has been read: a recursion has thousands of frames with the same one."""

    def unwind(
        self, registers: Registers, interrupted: bool, _read_register: ReadRegister | None
    ) -> UnwindResult | None:
        """Return the caller of a frame; see :class:`sframe_unwind.unwind.walk.FallbackUnwinder`.

        :raises SFrameError: a step by CFI or by the code failed, and nothing else gives a caller.
        """
        if registers.pc not in self._no_trampolines and self._code.may_be_trampoline(registers.pc):
            result = signal_frame.unwind(self._arch, self._memory.read, self._memory.read_word, registers)
            if result is not None:
                self._history.note_interrupted(result.read_register)
                return result
            self._no_trampolines.add(registers.pc)
        result = None
        error: SFrameError | None = None
        for by_rules in filter(None, (self._by_cfi, self._by_code)):
            try:
                result = by_rules(registers, interrupted)
            except SFrameError as found:
                error = error or found
            if result is not None:
                break
        if result is None and self._guess is not None:
            result = self._guess(registers, interrupted and error is None)
        if result is None and error is not None:
            raise error
        return result

    def _by_cfi(self, registers: Registers, interrupted: bool) -> UnwindResult | None:
        if self._cfi is None or (self._history.is_sp_guessed and self._needs_sp(registers, interrupted)):
            return None
        read_register = self._history.read_register
        result = self._cfi.unwind(registers, interrupted, read_register)
        return result._replace(read_register=read_register) if result is not None and result.signal else result

    def _needs_sp(self, registers: Registers, interrupted: bool) -> bool:
        found = self._code.find_cfi(lookup_address(registers.pc, interrupted))
        return found is not None and found.rule.cfa is not None and found.rule.cfa.base == self._arch.sp
