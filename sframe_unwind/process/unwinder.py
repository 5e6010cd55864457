"""What unwinds the frames that SFrame does not cover: the kernel's signal frames, DWARF CFI, and a guess at last."""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError, StepError
from sframe_unwind.memory import ReadMemory, ReadRegister, ReadWord
from sframe_unwind.process.objects import Objects
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.unwind import frame_pointer, signal_frame
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind.walk import Registers, UnwindResult

NAME = "dwarf"


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

    def unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None
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
        pc, sp, fp = registers
        found = self._objects.find_cfi(pc if interrupted else pc - 1)
        if found is None:
            return None
        if found.rule.ra_undefined:
            return UnwindResult(None, False, None, NAME)
        if found.rule.ra is None and not interrupted:
            raise StepError(f"the CFI at {pc:#x} has the return address in its register, which calls overwrite")
        caller = step(found.rule, self._arch, sp, fp, self._read_word, self._trail.read_register)
        return UnwindResult(caller, found.signal, self._trail.read_register if found.signal else None, NAME)

    def _guess(self, registers: Registers, interrupted: bool) -> UnwindResult | None:
        is_code = self._objects.is_code
        if interrupted and not is_code(registers.pc):
            return frame_pointer.unwind_bad_call(
                self._arch, self._read_word, registers, self._trail.read_register, is_code
            )
        return frame_pointer.unwind(self._arch, self._read_word, registers, is_code)
