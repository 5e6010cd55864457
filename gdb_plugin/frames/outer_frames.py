"""Finds out, before GDB asks, which outer frames of a deep stack are left to GDB, so that it need not tell their pcs.

GDB 13 tells an unwinder a frame's pc only as the value of a register, and the time for that grows with the level of the
frame: some 20 µs at level 100,000, where GDB's own work for a frame takes 30 µs.  So this class walks ahead by the CFI
that GDB will use, which takes 2 µs for each frame, and keeps the pcs.  The walk ends at the first frame whose pc does
not show that it is left to GDB.

Another unwinder in Python can give a frame another caller than the CFI does, and lead GDB to other frames than those of
the walk.  Some of them are then left to GDB although SFrame differs, until the end of the walk, where the last pc is
compared with GDB's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import WordReader
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind.walk import Registers
from sframe_unwind.unwind_rule import UnwindRule

_FIRST, _LONGEST = 64, 4096
"""Numbers of frames of the first walk in a chain, and of the longest one.  Each walk is twice as long as the one before
it, so the frames that are read are never many more than those that GDB asks for."""


class OuterFrames:
    """The next outer frames of the chain of frames that GDB asks for.

    :param read_word: reads the stack.
    :param native_rule: if the frames of a return address are known to be left to GDB, returns the rule by which GDB's
        own unwinder finds their callers; ``None``: they are not known to be, or the rule needs more than SP and FP.
    """

    def __init__(self, arch: Arch, read_word: WordReader, native_rule: Callable[[int], UnwindRule | None]) -> None:
        self._arch = arch
        self._read_word = read_word
        self._native_rule = native_rule
        self._rules: dict[int, UnwindRule] = {}
        self._next_level = 0
        self._begin()

    def _begin(self) -> None:
        self._wait, self._length = _FIRST, _FIRST
        self.forget()

    def forget(self) -> None:
        """Forget the frames of the walk: SFrame unwinds one of them, or may do so."""
        self._known: list[int] = []
        """The pcs of the next frames, the innermost last.  Inlined functions, which take levels, are not among them."""
        self._beyond: Registers | None = None
        """The first frame beyond the known ones, whose pc is compared with the one that GDB has."""
        self._passed = 0
        """Number of frames that were left to GDB since the last walk."""

    def known_pc(self, level: int) -> int | None:
        """Return the pc of the frame that GDB asks for, if it is known in advance that the frame is left to GDB."""
        if level < self._next_level or not self._known:  # at a lower level, GDB has begun a new chain
            return None
        self._next_level = level + 1
        return self._known.pop()

    def left(self, level: int, pc: int) -> bool:
        """Take account of a frame that is left to GDB, and whose pc was not known in advance.

        :return: whether :meth:`walk` is wanted, with the registers of this frame.
        """
        if level < self._next_level:
            self._begin()
        self._next_level = level + 1
        if self._beyond is not None and self._beyond.pc == pc:
            self.walk(self._beyond)
            return False
        self._passed += 1
        if self._passed < self._wait:
            return False
        # Reading registers in an outer frame takes GDB long, so the distance to the next try is doubled.
        self._wait *= 2
        return True

    def walk(self, registers: Registers) -> None:
        """Walk outward from the frame that GDB asked for last, which is left to it."""
        self.forget()
        arch, read_word, rules, length = self._arch, self._read_word, self._rules, self._length
        read_word.forget()
        pc, sp, fp = registers
        known: list[int] = []
        rule = self._rule(pc)
        with suppress(SFrameError):  # the stack cannot be read, or leads nowhere
            while rule is not None:
                _, pc, outer_sp, fp = step(rule, arch, sp, fp, read_word)
                if outer_sp <= sp:
                    break
                sp = outer_sp
                rule = rules.get(pc) or self._rule(pc)
                if rule is None or len(known) == length:
                    self._beyond = Registers(pc, sp, fp)
                    break
                known.append(pc)
        known.reverse()
        self._known = known
        self._length = min(2 * length, _LONGEST)

    def _rule(self, pc: int) -> UnwindRule | None:
        rule = self._native_rule(pc)
        if rule is not None:
            self._rules[pc] = rule
        return rule
