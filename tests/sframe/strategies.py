"""Generates valid sections of every version and ABI with hypothesis, with their expected contents."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber, FdeType, Flag, PauthKey, PcType
from sframe_unwind.sframe.encode import FunctionSpec, RowSpec, SectionSpec, TableSpec, usual_table
from sframe_unwind.sframe.encode_rule import function as function_from_rules
from sframe_unwind.sframe.row_context import cfa_offset
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa

AMD64 = AbiNumber.AMD64_ENDIAN_LITTLE
S390X = AbiNumber.S390X_ENDIAN_BIG
AARCH64 = (AbiNumber.AARCH64_ENDIAN_LITTLE, AbiNumber.AARCH64_ENDIAN_BIG)

KINDS = [(version, abi) for version in (1, 2, 3) for abi in AbiNumber]
"""All versions with the ABIs that they have."""

SECTION_ADDRESS = 0x5000_0000

_OFFSETS = st.integers(-(1 << 31), (1 << 31) - 1)
_SMALL = st.integers(-128, 127)
OTHERS = st.none()
"""Rules of other registers: none, as SFrame does not track them."""


@dataclass(frozen=True)
class Described:
    """A function, as a linear search of the section finds it."""

    start: int
    size: int
    repetition: int
    """The length of a mask function's block; 0: it is not a mask function."""
    rows: tuple[tuple[int, UnwindRule], ...]

    def lookup(self, pc: int) -> tuple[int, UnwindRule] | None:
        """Return the row for an address within the function."""
        offset = pc - self.start
        if self.repetition:
            offset %= self.repetition
        at = bisect_right([start for start, _ in self.rows], offset) - 1
        return self.rows[at] if at >= 0 else None


@dataclass(frozen=True)
class Made:
    """A section and its expected contents."""

    spec: SectionSpec
    functions: tuple[Described, ...]

    def lookup(self, pc: int) -> tuple[int, int, UnwindRule] | None:
        """Return function start, row start and rule for an address, found by looking at every function."""
        for function in self.functions:
            if function.start <= pc < function.start + function.size:
                row = function.lookup(pc)
                return row and (function.start, *row)
        return None

    def interesting(self) -> list[int]:
        """Return the addresses at which the answer may change, and those beside them."""
        places = {SECTION_ADDRESS}
        for function in self.functions:
            places |= {function.start, function.start + function.size}
            places |= {function.start + start for start, _ in function.rows}
            places |= {function.start + function.repetition + start for start, _ in function.rows}
        return sorted({place + step for place in places for step in (-1, 0, 1)})


def nonzero(values: Any) -> Any:
    return values.filter(bool)


def default_rules(version: int, abi: AbiNumber) -> Any:
    """Return rules that default rows can express."""
    registers = ARCH_BY_ABI[abi]
    words = st.one_of(_SMALL, _OFFSETS)
    base = st.sampled_from([registers.sp, registers.fp])
    saved = nonzero(words).map(saved_at_cfa)
    unsigned = st.just(False)
    if abi is AMD64:
        cfa = st.builds(RegisterRule, base, words, st.just(False))
        return st.builds(UnwindRule, cfa, st.just(saved_at_cfa(-8)), st.one_of(st.none(), saved), unsigned, OTHERS)
    if abi is S390X:
        cfa = st.builds(RegisterRule, base, words.map(lambda word: word * 8 + 160), st.just(False))
        place = nonzero(words.map(lambda word: word & ~1)).map(saved_at_cfa)
        if version == 2:
            place = st.one_of(place, st.integers(0, 31).map(lambda number: RegisterRule(number, 0, False)))
        return st.builds(UnwindRule, cfa, st.one_of(st.none(), place), st.one_of(st.none(), place), unsigned, OTHERS)
    cfa = st.builds(RegisterRule, base, words, st.just(False))
    return st.one_of(
        st.builds(UnwindRule, cfa, st.none(), st.none(), st.booleans(), OTHERS),
        st.builds(UnwindRule, cfa, saved, st.one_of(st.none(), saved), st.booleans(), OTHERS),
    )


def flexible_rules(abi: AbiNumber) -> Any:
    """Return rules that flexible rows can express."""
    registers = ARCH_BY_ABI[abi]
    words = st.one_of(_SMALL, _OFFSETS)
    number = st.one_of(st.integers(0, 33), st.integers(0, (1 << 29) - 1))
    cfa = st.builds(RegisterRule, number, words.map(lambda word: cfa_offset(registers, word)), st.booleans())
    place = st.one_of(
        st.builds(RegisterRule, number, words, st.booleans()),
        st.builds(RegisterRule, st.just(CFA), words, st.just(True)),
    )
    ra = st.one_of(st.just(saved_at_cfa(-8)) if abi is AMD64 else st.none(), place)
    signed = st.booleans() if abi in AARCH64 else st.just(False)
    return st.builds(UnwindRule, cfa, ra, st.one_of(st.none(), place), signed, OTHERS)


@st.composite
def rule_functions(draw: Any, table: TableSpec, start: int, size: int) -> tuple[FunctionSpec, Described]:
    """Return one function of the table's version and ABI, made from rules."""
    rules = st.one_of(default_rules(table.version, table.abi), st.just(OUTERMOST))
    if table.version == 3 and draw(st.booleans()):
        rules = st.one_of(flexible_rules(table.abi), rules)
    mask = draw(st.booleans())
    repetition = 0 if not mask else 16 if table.version == 1 else draw(st.integers(1, 255))
    limit = max(min(size, repetition or size) - 1, 0)
    starts = sorted(draw(st.sets(st.one_of(st.integers(0, min(limit, 40)), st.integers(0, limit)), max_size=5)))
    rows = [(offset, draw(rules)) for offset in starts]
    made = function_from_rules(table, start, size, rows)._replace(
        pc_type=PcType.MASK if mask else PcType.INC,
        repetition_size=repetition,
        pauth_key=draw(st.sampled_from(PauthKey)) if table.abi in AARCH64 else PauthKey.A,
        signal=table.version == 3 and draw(st.booleans()),
    )
    return made, Described(start, size, repetition, tuple(rows))


@st.composite
def sections(draw: Any, max_tables: int = 3, empty_functions: bool = True) -> Made:
    """Return a section of some version and ABI, with functions that do not overlap, spread over its tables."""
    version, abi = draw(st.sampled_from(KINDS))
    # Within reach of the start field: 32 bits before version 3.
    reach = 1 << 44 if version == 3 else 1 << 28
    address = SECTION_ADDRESS + draw(st.one_of(st.just(0x1000), st.integers(-reach, reach)))
    tables = [_empty_table(draw, version, abi) for _ in range(draw(st.integers(1, max_tables)))]
    members: list[list[FunctionSpec]] = [[] for _ in tables]
    described = []
    for _ in range(draw(st.integers(0, 10))):
        address += draw(st.sampled_from([0, 0, 1, 16, 0x1234]))
        size = draw(st.one_of(st.integers(0 if empty_functions else 1, 64), st.sampled_from([0x100, 0x10001])))
        number = draw(st.integers(0, len(tables) - 1))
        made, said = draw(rule_functions(tables[number], address, size))
        members[number].append(made)
        described.append(said)
        address += size
    filled = [_fill(draw, table, functions) for table, functions in zip(tables, members)]
    padded = draw(st.booleans())
    spec = SectionSpec(SECTION_ADDRESS, tuple(filled))
    return Made(spec._replace(size=0x10000) if padded else spec, tuple(described))


def _empty_table(draw: Any, version: int, abi: AbiNumber) -> TableSpec:
    pcrel = Flag.FDE_FUNC_START_PCREL if version == 3 or (version == 2 and draw(st.booleans())) else Flag(0)
    return usual_table(version, abi)._replace(flags=pcrel, aux_header=draw(st.binary(max_size=9)))


def _fill(draw: Any, table: TableSpec, functions: list[FunctionSpec]) -> TableSpec:
    """Fill a table with functions: sorted and flagged so; in any order; or in any order and flagged as sorted."""
    order = draw(st.sampled_from(["sorted", "unsorted", "lie"]))
    if order != "sorted":
        functions = draw(st.permutations(functions))
    claim = Flag(0) if order == "unsorted" else Flag.FDE_SORTED
    return table._replace(functions=tuple(functions), flags=table.flags | claim)


@st.composite
def raw_rows(draw: Any, address_size: int) -> tuple[RowSpec, ...]:
    """Return rows of any words, whatever they mean."""
    rows = []
    for start in sorted(draw(st.lists(st.integers(0, (1 << 8 * address_size) - 1), max_size=5))):
        size_code, count = draw(st.integers(0, 2)), draw(st.integers(0, 15))
        top = 1 << 8 * (1 << size_code) - 1
        words = tuple(draw(st.lists(st.integers(-top, top - 1), min_size=count, max_size=count)))
        info = draw(st.sampled_from([0, 1, 0x80, 0x81])) | count << 1 | size_code << 5
        rows.append(RowSpec(start, info, words))
    return tuple(rows)


@st.composite
def raw_sections(draw: Any) -> SectionSpec:
    """Return sections that use every field of the format, with rows of any words."""
    version, abi = draw(st.sampled_from(KINDS))
    tables = []
    for _ in range(draw(st.integers(1, 3))):
        table = _empty_table(draw, version, abi)._replace(
            fixed_fp_offset=draw(_SMALL), fixed_ra_offset=draw(_SMALL), fde_offset=draw(st.sampled_from([0, 4]))
        )
        functions = [draw(_raw_function(table)) for _ in range(draw(st.integers(0, 4)))]
        tables.append(_fill(draw, table, functions))
    return SectionSpec(SECTION_ADDRESS, tuple(tables))


@st.composite
def _raw_function(draw: Any, table: TableSpec) -> FunctionSpec:
    version = table.version
    reach = 1 << 62 if version == 3 else 1 << 30
    address_size = draw(st.sampled_from([1, 2, 4]))
    mask = draw(st.booleans())
    return FunctionSpec(
        start=SECTION_ADDRESS + draw(st.integers(-reach, reach)),
        size=draw(st.integers(0, (1 << 32) - 1)),
        rows=draw(raw_rows(address_size)),
        address_size=address_size,
        pc_type=PcType.MASK if mask else PcType.INC,
        repetition_size=(16 if mask else 0) if version == 1 else draw(st.integers(int(mask), 255)),
        fde_type=draw(st.sampled_from(FdeType)) if version == 3 else FdeType.DEFAULT,
        pauth_key=draw(st.sampled_from(PauthKey)),
        signal=version == 3 and draw(st.booleans()),
    )
