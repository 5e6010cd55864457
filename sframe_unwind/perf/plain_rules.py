"""Unwind rules that need only SP, the frame pointer and the copy of the stack; they are applied fast.

Nearly all frames have such rules.  :class:`sframe_unwind.unwind.walk.Walk` applies any rule, and takes several times
as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Callable, Optional

from sframe_unwind.address import WORD_SIZE, lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.walk import Registers
from sframe_unwind.unwind_rule import CFA, UnwindRule

FindRule = Callable[[int], Optional[UnwindRule]]
"""``(lookup address)``: returns the rule for the address.

``None``: there is none, it is malformed, or the frame is of a signal.
"""
PlainFrame = tuple[int, int, int, int]
"""pc, SP, frame pointer and CFA of a frame with a plain rule; a named tuple would cost half as much time again."""
_MOST_RULES = 200_000


class PlainRule(NamedTuple):
    """A rule with the return address in memory.  All offsets are multiples of 8 bytes."""

    from_fp: bool
    """The CFA is computed from the frame pointer, otherwise from SP."""
    cfa: int
    """Offset of the CFA from that register."""
    ra: int
    """Offset of the return address from the CFA."""
    fp: int | None
    """Offset of the saved frame pointer from the CFA; ``None``: the register is unchanged."""


def plain_rule(rule: UnwindRule, arch: Arch) -> PlainRule | None:
    """Return a rule in its plain form; ``None``: it has none."""
    cfa, ra, fp = rule.cfa, rule.ra, rule.fp
    if cfa is None or cfa.in_memory or cfa.base not in (arch.sp, arch.fp) or ra is None or rule.ra_signed:
        return None
    if any(saved is not None and not (saved.base == CFA and saved.in_memory) for saved in (ra, fp)):
        return None
    offsets = cfa.offset, ra.offset, 0 if fp is None else fp.offset
    if any(offset % WORD_SIZE for offset in offsets):
        return None
    return PlainRule(cfa.base == arch.fp, cfa.offset, ra.offset, None if fp is None else fp.offset)


class Walked(NamedTuple):
    """The frames from the innermost one outward that have plain rules by one method."""

    rules: PlainRules
    frames: list[PlainFrame]
    registers: Registers
    """Those of the next frame."""

    @property
    def pcs(self) -> list[int]:
        """The pc of each frame, and of the next one."""
        return [*(frame[0] for frame in self.frames), self.registers.pc]


class PlainRules:
    """The plain rules of an address space, by lookup address.

    :param find_rule: finds the rules of a method.
    """

    def __init__(self, arch: Arch, find_rule: FindRule) -> None:
        self._arch = arch
        self._find_rule = find_rule
        self.find = lru_cache(_MOST_RULES)(self._find)
        """Returns the rule for a lookup address, or ``None``."""
        # By return address, so that a frame costs one call.
        self._find_of_caller = lru_cache(_MOST_RULES)(lambda pc: self._find(lookup_address(pc, False)))
        self._alike: dict[PlainRules, set[int]] = {}
        """The return addresses at which the rules of another method are known to be the same."""

    def _find(self, lookup: int) -> PlainRule | None:
        rule = self._find_rule(lookup)
        return None if rule is None else plain_rule(rule, self._arch)

    def is_outermost(self, lookup: int) -> bool:
        """Return whether the rule for a lookup address has no return address."""
        rule = self._find_rule(lookup)
        return rule is not None and rule.ra_undefined

    def shares(self, walked: Walked, pcs: Sequence[int]) -> bool:
        """Return whether a walk by these rules would be the same as that by the rules of another method.

        :param walked: the walk by the other rules, from an interrupted frame.
        :param pcs: its :attr:`Walked.pcs`.
        """
        other = walked.rules
        innermost = lookup_address(pcs[0], True)
        if self.find(innermost) != other.find(innermost):
            return False
        alike = self._alike.setdefault(other, set())
        if alike.issuperset(islice(pcs, 1, None)):  # most stacks consist of frames that were seen before
            return True
        if len(alike) >= _MOST_RULES:
            alike.clear()
        for pc in islice(pcs, 1, None):
            if pc not in alike and self._find_of_caller(pc) != other._find_of_caller(pc):
                return False
            alike.add(pc)
        return True

    def follow(
        self, words: Sequence[int], start: int, registers: Registers, interrupted: bool
    ) -> tuple[list[PlainFrame], Registers]:
        """Unwind frames as long as they have plain rules whose values are in the copy of the stack.

        :param words: the copy.
        :param start: address of the first word.
        :param registers: registers of the first frame.
        :param interrupted: the pc of that frame is not a return address.
        :return: the frames, and the registers of the next one.
        """
        frames: list[PlainFrame] = []
        if start % WORD_SIZE:
            return frames, registers
        find, add, sp_from_cfa = self._find_of_caller, frames.append, self._arch.sp_from_cfa
        pc, sp, fp = registers
        rule = self.find(lookup_address(pc, interrupted))
        try:
            while rule is not None:
                from_fp, cfa, ra, saved = rule
                cfa += fp if from_fp else sp
                caller_sp = cfa + sp_from_cfa
                ra += cfa - start
                # A negative index would count from the end of the copy.
                if caller_sp <= sp or ra < 0 or cfa % WORD_SIZE:
                    break
                caller_pc = words[ra >> 3]
                if saved is None:
                    caller_fp = fp
                else:
                    saved += cfa - start
                    if saved < 0:
                        break
                    caller_fp = words[saved >> 3]
                add((pc, sp, fp, cfa))
                pc, sp, fp = caller_pc, caller_sp, caller_fp
                rule = find(pc)
        except IndexError:  # after the end of the copy
            pass
        return frames, Registers(pc, sp, fp)
