"""Registers of outer frames that depend on registers of all frames inside."""

from __future__ import annotations

from sframe_unwind.arch import ARCHES
from sframe_unwind.cfi.section import CfiMatch
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.unwind.walk import Frame
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

DEPTH = 20_000
RBX = 3


def test_register_of_the_outermost_of_many_frames() -> None:
    """The CFI finds the caller's rbx through the frame's own; recursion in Python ended such walks at 400 frames."""
    amd64 = next(arch for arch in ARCHES if arch.name == "amd64")
    rule = UnwindRule(RegisterRule(RBX, 16, False), None, None, others=((RBX, RegisterRule(RBX, 0, True)),))
    match = CfiMatch(rule, False)

    def read_word(address: int) -> int:
        return address + 16  # where rbx points, there is the caller's rbx

    history = RegisterHistory(amd64, lambda number: 0x1000 * (number == RBX), read_word, lambda _: match)
    for level in range(DEPTH):
        history.add(
            Frame(
                level=level,
                pc=0x40,
                sp=0x1000 + 16 * level,
                fp=0,
                cfa=0x1010 + 16 * level,
                unwinder="dwarf",
                interrupted=level == 0,
            )
        )
    assert history.read_register(RBX) == 0x1000 + 16 * DEPTH
    assert history.read_register(RBX) == 0x1000 + 16 * DEPTH
