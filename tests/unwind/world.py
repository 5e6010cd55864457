"""A process for tests: modules with encoded SFrame data, and a stack as a dictionary of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from sframe_unwind.sframe.encode import FunctionSpec, SectionSpec, encode, usual_table
from sframe_unwind.sframe.encode_rule import function
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind.other_stacks import OtherStacks
from sframe_unwind.unwind.walk import FallbackUnwinder, Frame, Registers, Walk
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule, saved_at_cfa

CODE = 0x10000
SECTION = 0x80000
STACK = 0x7FFF_0000


def module(
    abi: AbiNumber,
    rules: Mapping[tuple[int, int], Sequence[tuple[int, UnwindRule]]],
    version: int = 3,
    signal: Sequence[int] = (),
) -> Module:
    """Return a module whose functions are given by start and size, with the rules of their rows.

    :param signal: starts of the functions that are signal trampolines.
    """
    table = usual_table(version, abi)
    functions: list[FunctionSpec] = []
    for (start, size), rows in rules.items():
        spec = function(table, start, size, rows)
        functions.append(spec._replace(signal=True) if start in signal else spec)
    data = encode(SectionSpec(SECTION, (table._replace(functions=tuple(functions)),)))
    return Module("made-up", [(CODE, CODE + 0x10000)], lambda: Section(data, SECTION))


def sp_based(abi: Arch, offset: int, fp_at: int | None = None, ra_at: int | None = None) -> UnwindRule:
    """Return a rule with ``CFA = SP + offset``, RA and FP in memory at CFA plus the offsets."""
    ra = saved_at_cfa(-8) if abi.ra is None else (None if ra_at is None else saved_at_cfa(ra_at))
    return UnwindRule(RegisterRule(abi.sp, offset, False), ra, None if fp_at is None else saved_at_cfa(fp_at))


class Memory:
    """Words by address; any other address cannot be read."""

    def __init__(self, words: Mapping[int, int]) -> None:
        self.words = dict(words)
        self.reads = 0

    def __call__(self, address: int) -> int:
        self.reads += 1
        if address not in self.words:
            raise MemoryReadError(address, 8)
        return self.words[address]


def walk(
    abi: AbiNumber,
    modules: Sequence[Module],
    registers: Registers,
    memory: Memory,
    others: Mapping[int, int] | None = None,
    fallback: FallbackUnwinder | None = None,
    limit: int = 1000,
    other_stacks: OtherStacks | None = None,
) -> tuple[list[Frame], Walk]:
    """Walk a stack; return the frames and the walk that ended.

    :param others: the other registers of the innermost frame.
    """
    steps = Walk(
        ARCH_BY_ABI[abi],
        Modules(ARCH_BY_ABI[abi], modules),
        registers,
        memory,
        read_register=(others or {}).__getitem__,
        fallback=fallback,
        limit=limit,
        other_stacks=other_stacks,
    )
    return list(steps), steps
