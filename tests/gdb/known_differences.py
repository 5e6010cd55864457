"""Known errors in the unwind data of the samples, with reasons: the only differences that stepping may show.

For each, the executed calls and returns (`tests.gdb.inside.stepping`) and the disassembly show which side is right.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

SFRAME, BOTH, NATIVE = ("sframe",), ("native", "sframe"), ("native",)


class Known(NamedTuple):
    """Instructions at which the data of one side is wrong."""

    samples: tuple[str, ...]
    versions: tuple[int, ...]
    wrong: tuple[str, ...]
    symbol: str
    """A regular expression for the output of `info symbol` for the instruction's address."""
    instruction: str
    """A regular expression for the instruction."""
    section: str
    reason: str


KNOWN = (
    Known(
        samples=("realign",),
        versions=(1, 2, 3),
        wrong=BOTH,
        symbol=r"aligned_local \+ \d+ in",
        instruction=r"add +%\w+,%eax|lea +-0x8\(%r10\),%rsp|ret",
        section=".text",
        reason="GCC's CFI still says that rbp is saved at (rbp) when it is popped; SFrame and DWARF say the same, and"
        " the next frame, which has its CFA from rbp, is lost to both",
    ),
)

UNREADABLE_FP = ("realign",)
"""Samples in which, for the reason of the last entry, FP would be read from unmapped memory.  SFrame's answer is then
not used, and GDB's own unwinder, which reads FP only on demand, finds the caller."""


def explains(sample: str, version: int, difference: dict[str, Any]) -> Known | None:
    """Return the known difference to which one found by stepping belongs."""
    where = difference["where"]
    for known in KNOWN:
        if (
            sample in known.samples
            and version in known.versions
            and tuple(difference["wrong"]) == known.wrong
            and where["section"] == known.section
            and re.match(known.symbol, where["symbol"])
            and re.match(known.instruction, where["instruction"])
        ):
            return known
    return None
