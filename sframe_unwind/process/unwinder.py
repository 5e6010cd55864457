"""Unwinds the frames without SFrame data: as signal frames, by DWARF CFI, or by a guess, in this order."""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadMemory, ReadRegister, ReadWord
from sframe_unwind.process.objects import Objects
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.unwind import frame_pointer, signal_frame
from sframe_unwind.unwind.cfi_fallback import CfiFallback
from sframe_unwind.unwind.walk import Registers, UnwindResult


class Fallback:
    """Unwinds frames of one thread.

    :param history: the frames that the walk has passed.
    """

    def __init__(
        self, arch: Arch, objects: Objects, read: ReadMemory, read_word: ReadWord, history: RegisterHistory
    ) -> None:
        self._arch = arch
        self._objects = objects
        self._read = read
        self._read_word = read_word
        self._history = history
        self._cfi = CfiFallback(arch, objects.find_cfi, read_word)

    def unwind(
        self, registers: Registers, interrupted: bool, _read_register: ReadRegister | None
    ) -> UnwindResult | None:
        """Return the caller of a frame; see :class:`sframe_unwind.unwind.walk.FallbackUnwinder`.

        :raises SFrameError: the step by CFI failed, and a guess found no caller.
        """
        result = signal_frame.unwind(self._arch, self._read, self._read_word, registers)
        if result is not None:
            self._history.note_interrupted(result.read_register)
            return result
        error: SFrameError | None = None
        try:
            result = self._by_cfi(registers, interrupted)
        except SFrameError as found:
            error = found
        result = result or self._guess(registers, interrupted)
        if result is None and error is not None:
            raise error
        return result

    def _by_cfi(self, registers: Registers, interrupted: bool) -> UnwindResult | None:
        read_register = self._history.read_register
        result = self._cfi.unwind(registers, interrupted, read_register)
        return result._replace(read_register=read_register) if result is not None and result.signal else result

    def _guess(self, registers: Registers, interrupted: bool) -> UnwindResult | None:
        is_code = self._objects.is_code
        if interrupted and not is_code(registers.pc):
            return frame_pointer.unwind_bad_call(
                self._arch, self._read_word, registers, self._history.read_register, is_code
            )
        return frame_pointer.unwind(self._arch, self._read_word, registers, is_code)
