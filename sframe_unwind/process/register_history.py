"""The frames that a walk has passed, and what they say of registers other than pc, SP and FP.

SFrame does not restore these, and hardly any CFI wants them; the dynamic linker's does, with a CFA based on ``rbx``.
So nothing is tracked: who wants a register's value asks for it, and the CFI of the frames inside is asked then.
"""

from __future__ import annotations

from functools import partial

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import StepError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.process.objects import FindCfi
from sframe_unwind.unwind.step import value_of
from sframe_unwind.unwind.walk import Frame


class RegisterHistory:
    """The frames of one thread, from the innermost outward.

    :param find_cfi: finds the CFI for a lookup address.
    """

    def __init__(self, arch: Arch, innermost: ReadRegister, read_word: ReadWord, find_cfi: FindCfi) -> None:
        self._arch = arch
        self._read_word = read_word
        self._find_cfi = find_cfi
        self._frames: list[Frame] = []
        self._known: dict[int, ReadRegister] = {0: innermost}

    @property
    def frames(self) -> tuple[Frame, ...]:
        """What was added."""
        return tuple(self._frames)

    def add(self, frame: Frame) -> None:
        """Add the next frame outward."""
        self._frames.append(frame)

    def note_interrupted(self, read_register: ReadRegister | None) -> None:
        """Note that the frame after the next is one whose registers all are known."""
        if read_register is not None:
            self._known[len(self._frames) + 1] = read_register

    def read_register(self, number: int) -> int:
        """Return a register of the frame after the last one, by its DWARF number.

        :raises SFrameError: it cannot be known.
        """
        return self._read(len(self._frames), number)

    def _read(self, level: int, number: int) -> int:
        while level not in self._known:
            if level < len(self._frames):
                frame = self._frames[level]
                own = {self._arch.pc: frame.pc, self._arch.sp: frame.sp, self._arch.fp: frame.fp}
                if number in own:
                    return own[number]
            inner = self._frames[level - 1]
            found = self._find_cfi(lookup_address(inner.pc, inner.interrupted))
            if found is None or inner.cfa is None:
                name = self._arch.register_name(number)
                raise StepError(f"{name} is wanted, of which the frame at {inner.pc:#x} says nothing")
            place = found.rule.place(number, self._arch.fp)
            level -= 1
            if place is not None:
                read_inner = partial(self._read, level)
                return value_of(place, self._arch, inner.cfa, inner.sp, inner.fp, self._read_word, read_inner)
        return self._known[level](number)
