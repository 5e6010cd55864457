"""What unwinds the frames that SFrame does not cover: the kernel's signal frames, DWARF CFI, and a guess at last."""

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
    """Unwinds frames of one thread."""

    def __init__(
        self, arch: Arch, objects: Objects, read: ReadMemory, read_word: ReadWord, trail: RegisterHistory
    ) -> None:
        self._arch = arch
        self._objects = objects
        self._read = read
        self._read_word = read_word
        self._trail = trail
        self._cfi = CfiFallback(arch, objects.find_cfi, read_word)

    def unwind(
        self, registers: Registers, interrupted: bool, _read_register: ReadRegister | None
    ) -> UnwindResult | None:
        """Return the caller of a frame; see :class:`sframe_unwind.unwind.walk.FallbackUnwinder`.

        :raises SFrameError: there is CFI, but it cannot be carried out, and there is no caller to guess either.
        """
        handed = signal_frame.unwind(self._arch, self._read, self._read_word, registers)
        if handed is not None:
            self._trail.note_interrupted(handed.read_register)
            return handed
        error: SFrameError | None = None
        try:
            handed = self._by_cfi(registers, interrupted)
        except SFrameError as found:
            error = found
        handed = handed or self._guess(registers, interrupted)
        if handed is None and error is not None:
            raise error
        return handed

    def _by_cfi(self, registers: Registers, interrupted: bool) -> UnwindResult | None:
        found = self._cfi.unwind(registers, interrupted, self._trail.read_register)
        return found._replace(read_register=self._trail.read_register) if found is not None and found.signal else found

    def _guess(self, registers: Registers, interrupted: bool) -> UnwindResult | None:
        is_code = self._objects.is_code
        if interrupted and not is_code(registers.pc):
            return frame_pointer.unwind_bad_call(
                self._arch, self._read_word, registers, self._trail.read_register, is_code
            )
        return frame_pointer.unwind(self._arch, self._read_word, registers, is_code)
