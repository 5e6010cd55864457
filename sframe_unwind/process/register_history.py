"""Computes registers other than pc, SP and FP in outer frames, on demand.

SFrame does not restore these registers, and CFI rarely needs them.  One use is the dynamic linker, with a CFA based on
``rbx``.  Therefore a walk does not track them.  When a rule needs one, this module applies the CFI of the inner frames.
"""

from __future__ import annotations

from functools import partial

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import FindCfi
from sframe_unwind.errors import StepError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind.step import value_of
from sframe_unwind.unwind.walk import Frame


class RegisterHistory:
    """The frames of one thread, from the innermost outward.

    :param innermost: reads the registers of the innermost frame.
    :param read_word: reads the memory of the process.
    :param find_cfi: finds the CFI for a lookup address.
    """

    def __init__(self, arch: Arch, innermost: ReadRegister, read_word: ReadWord, find_cfi: FindCfi) -> None:
        self._arch = arch
        self._read_word = read_word
        self._find_cfi = find_cfi
        self._frames: list[Frame] = []
        self._known: dict[int, ReadRegister] = {0: innermost}
        self._values: dict[tuple[int, int], int] = {}
        """The registers that were computed, by frame level and DWARF number."""
        self._guessed_sp: int | None = None
        """Level of a frame whose SP is only a lower bound."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that were added."""
        return tuple(self._frames)

    def add(self, frame: Frame) -> None:
        """Add the next frame outward."""
        self._frames.append(frame)

    def note_interrupted(self, read_register: ReadRegister | None) -> None:
        """Record that all registers of the frame after the next one are known, since a signal interrupted it."""
        if read_register is not None:
            self._known[len(self._frames) + 1] = read_register

    def note_guessed_sp(self) -> None:
        """Record that the SP of the frame after the next one is only a lower bound."""
        self._guessed_sp = len(self._frames) + 1

    @property
    def is_sp_guessed(self) -> bool:
        """Whether the SP of the frame after the last one is only a lower bound."""
        return self._guessed_sp == len(self._frames)

    def read_register(self, number: int) -> int:
        """Return a register of the frame after the last one.

        :param number: DWARF number of the register.
        :raises SFrameError: the value cannot be computed.
        """
        return self._read(len(self._frames), number)

    def _read(self, level: int, number: int) -> int:
        """Return a register of a frame.

        A register can depend on one of the next inner frame, which can depend on one of the frame inside it, and so on
        through thousands of frames, which is more than Python's stack holds.
        """
        pending = [(level, number)]
        while pending:
            try:
                self._values[pending[-1]] = self._compute(*pending[-1])
                pending.pop()
            except _NeededError as needed:
                pending.append(needed.register)
        return self._values[level, number]

    def _compute(self, level: int, number: int) -> int:
        """Return a register of a frame.

        :raises _NeededError: another register is needed for it.
        """
        while level not in self._known:
            if (level, number) in self._values:
                return self._values[level, number]
            if level < len(self._frames):
                frame = self._frames[level]
                own = {self._arch.pc: frame.pc, self._arch.sp: frame.sp, self._arch.fp: frame.fp}
                if number in own:
                    return own[number]
            inner = self._frames[level - 1]
            found = self._find_cfi(lookup_address(inner.pc, inner.interrupted))
            if found is None or inner.cfa is None:
                name = self._arch.register_name(number)
                raise StepError(f"the rule needs {name}, for which the frame at {inner.pc:#x} has no CFI")
            rule = found.rule.register_rule(number, self._arch.fp)
            level -= 1
            if rule is not None:
                read_inner = partial(self._known_value, level)
                return value_of(
                    rule=rule,
                    arch=self._arch,
                    cfa=inner.cfa,
                    sp=inner.sp,
                    fp=inner.fp,
                    read_word=self._read_word,
                    read_register=read_inner,
                )
        return self._known[level](number)

    def _known_value(self, level: int, number: int) -> int:
        found = self._values.get((level, number))
        if found is None:
            raise _NeededError((level, number))
        return found


class _NeededError(Exception):
    """A register that is not known yet."""

    def __init__(self, register: tuple[int, int]) -> None:
        self.register = register
