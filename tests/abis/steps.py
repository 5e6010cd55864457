"""The programs that are stepped by instruction, and the instructions at which GDB's own unwinder is known to be wrong.

The instruction stream (`tests.abis.inside.account`) shows which unwinder is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from sframe_unwind.sframe.constants import NEWEST
from tests.abis.mask_registers import has_masks
from tests.abis.native import FIXED
from tests.gdb import driver
from tests.samples.catalogue import ABIS, PLAIN_VARIANTS, SAMPLES, SIGNED_VARIANTS

LIMIT = 20_000
"""More instructions than any walk here takes."""


class Walk(NamedTuple):
    """A walk from a function's first instruction to its last, including all that it calls."""

    sample: str
    abi: str
    version: int
    debugger: str
    variant: str

    @property
    def first(self) -> str:
        """The function."""
        return "free_main" if SAMPLES[self.sample].freestanding else "main"

    @property
    def least(self) -> int:
        """Minimum number of instructions; fewer mean that something was left out."""
        return {"stepper": 550, "stepper_lazy": 1500, "free_walk": 120, "free_leaf": 20}[self.sample]


class Known(NamedTuple):
    """Instructions at which GDB's own unwinder is wrong.  Mode `always` may be wrong from a frame of GDB's own on."""

    abis: tuple[str, ...]
    debuggers: tuple[str, ...]
    samples: tuple[str, ...]
    variants: tuple[str, ...]
    symbol: str
    """A regular expression for function and offset."""
    wrong: tuple[str, ...]
    reason: str
    fixed_in: int = 0
    """The first version of GDB without this error; 0: none is known."""
    without_masks: bool = False
    """The error is seen only if the emulator has no mask registers."""


FURTHER_OUT = "frame pointer, or frames further out"
"""Differences that the account of the instructions does not reach."""

KNOWN = (
    Known(
        abis=("aarch64", "aarch64_be"),
        debuggers=("pypi", "system"),
        samples=("stepper", "free_walk", "free_leaf"),
        variants=SIGNED_VARIANTS,
        symbol=r"",
        wrong=("native", FURTHER_OUT),
        reason="GDB takes signed return addresses for addresses, as the emulator tells no mask: after paciasp or"
        " pacibsp no caller's frame is right",
        without_masks=True,
    ),
    Known(
        abis=("s390x",),
        debuggers=("system",),
        samples=("free_leaf",),
        variants=PLAIN_VARIANTS,
        symbol=r"busy_(leaf|return_address) \+ ",
        wrong=("native",),
        reason="GDB 13 and 16 cannot read a return address saved in a floating-point register: from after ldgr %f0,%r14"
        " to after lgdr %r14,%f0 they end with an error",
        fixed_in=FIXED,
    ),
    Known(
        abis=("aarch64",),
        debuggers=("pypi", "system"),
        samples=("stepper_lazy",),
        variants=PLAIN_VARIANTS,
        symbol=r"",
        wrong=("native", "sframe"),
        reason="the first stub of the PLT, which has no SFrame, pushes 16 bytes; neither GDB nor the CFI of glibc's"
        " _dl_runtime_resolve counts them",
    ),
)


def walks() -> Iterator[Walk]:
    """Yield all walks: version 3 in every variant, and one of each older version, whose rules are the same."""
    for abi in ABIS:
        versions = (2, 3) if abi == "s390x" else (1, 2, 3)
        for version in versions:
            if abi in ("aarch64", "s390x"):
                plain = PLAIN_VARIANTS if version == NEWEST else ("O2",)
                yield from (Walk("stepper", abi, version, "pypi", variant) for variant in plain)
            for sample in ("free_walk", "free_leaf"):
                for variant in ("O0", "O2", *SIGNED_VARIANTS) if version == NEWEST else ("O2", "pac"):
                    if variant in SAMPLES[sample].variants_for(abi):
                        yield Walk(sample, abi, version, "pypi", variant)
        if abi != "amd64":
            yield Walk("free_walk", abi, 3, "system", "O2")
            yield Walk("free_leaf", abi, 3, "system", "O2")
    for abi in ("aarch64", "s390x"):
        yield Walk("stepper", abi, 3, "system", "O2")
        yield Walk("stepper_lazy", abi, 3, "system", "O2")
    yield from (Walk("stepper", "aarch64", 3, "pypi", variant) for variant in SIGNED_VARIANTS)


def known(walk: Walk) -> list[Known]:
    """Return the differences that a walk must show."""
    found = driver.find(walk.debugger, walk.abi)
    return [
        entry
        for entry in KNOWN
        if walk.abi in entry.abis
        and walk.debugger in entry.debuggers
        and walk.sample in entry.samples
        and walk.variant in entry.variants
        and not (entry.fixed_in and found and found.version[0] >= entry.fixed_in)
        and not (entry.without_masks and has_masks(walk.abi))
    ]


def explains(entry: Known, difference: dict[str, Any]) -> bool:
    """Return whether a difference is an instance of a known one."""
    return (
        bool(re.match(entry.symbol, difference["symbol"]))
        and set(difference["wrong"]) <= set(entry.wrong)
        and difference["unwinder"] != "sframe"
    )
