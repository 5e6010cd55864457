"""The cases: sections made from descriptions, with the row for each of some addresses.

What is expected is computed from the descriptions, without decoding.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lab.readers.notation import Row, of_rule
from sframe_unwind.arch import Arch
from sframe_unwind.errors import EncodeError
from sframe_unwind.lint.catalogue import CODE_REWRITTEN, RULES
from sframe_unwind.sframe import header as header_format
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber, Flag, PauthKey, PcType
from sframe_unwind.sframe.encode import FunctionSpec, SectionSpec, TableSpec, encode, usual_table
from sframe_unwind.sframe.encode_rule import function
from sframe_unwind.sframe.sharing import with_shared_rows
from sframe_unwind.translation.compact import compacted
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa
from tests.lint.sections import BROKEN

ADDRESS = 0x400000
"""The address of the section, unless a case has another one."""
_CODE = 0x401000
_MAX_ADDRESSES = 60
_COMBINATIONS = [
    (version, abi) for version in (1, 2, 3) for abi in AbiNumber if version > 1 or abi is not AbiNumber.S390X_ENDIAN_BIG
]
SHORT = {
    AbiNumber.AARCH64_ENDIAN_BIG: "aarch64be",
    AbiNumber.AARCH64_ENDIAN_LITTLE: "aarch64",
    AbiNumber.AMD64_ENDIAN_LITTLE: "amd64",
    AbiNumber.S390X_ENDIAN_BIG: "s390x",
}
"""The names of the ABIs in names of cases."""
Rules = Sequence[tuple[int, UnwindRule]]


class Case(NamedTuple):
    """A section, and what a reader is expected to give for it."""

    name: str
    tests: str
    """A description of what the case tests."""
    version: int
    abi: int
    address: int
    section: bytes
    expected: tuple[tuple[int, Row], ...]
    """Addresses with their rows; for a malformed section only the addresses count."""
    is_valid: bool = True


class Described(NamedTuple):
    """A function with the rules that it was made from."""

    spec: FunctionSpec
    rules: Rules

    def row(self, pc: int) -> Row:
        """Return the row for an address; ``None``: there is none."""
        offset = pc - self.spec.start
        if not 0 <= offset < self.spec.size:
            return None
        if self.spec.pc_type is PcType.MASK:
            offset %= self.spec.repetition_size
        found = [rule for start, rule in self.rules if start <= offset]
        return of_rule(found[-1]) if found else None

    def addresses(self) -> Iterator[int]:
        """Yield the addresses around those at which the row changes."""
        start, end = self.spec.start, self.spec.start + self.spec.size
        for base in (0, self.spec.repetition_size * 2):
            for offset, _ in self.rules:
                yield from (start + base + offset - 1, start + base + offset)
        yield from (start - 1, start, end - 1, end)


class Maker:
    """Makes the cases of one version and ABI."""

    def __init__(self, version: int, abi: AbiNumber) -> None:
        self.version, self.abi = version, abi
        self.arch: Arch = ARCH_BY_ABI[abi]
        self.table = usual_table(version, abi)
        self.prefix = f"v{version}-{SHORT[abi]}"

    def rule(
        self, offset: int = 16, from_fp: bool = False, ra: int = 0, fp: int = 0, signed: bool = False
    ) -> UnwindRule:
        """Return a rule that default rows express.

        :param offset: of the CFA from the stack pointer, or from the frame pointer; a multiple of 8.
        :param ra: offset from the CFA at which the return address is saved; 0: it is not; ignored for AMD64.
        :param fp: offset from the CFA at which the frame pointer is saved; 0: it is not.
        """
        base = self.arch.fp if from_fp else self.arch.sp
        cfa = offset - self.arch.sp_from_cfa  # -160 on s390x
        saved_ra = saved_at_cfa(-8) if self.arch.ra is None else saved_at_cfa(ra) if ra else None
        return UnwindRule(RegisterRule(base, cfa, False), saved_ra, saved_at_cfa(fp) if fp else None, signed)

    def function(self, *rules: tuple[int, UnwindRule], start: int = _CODE, size: int = 0x100) -> Described:
        """Return a function with some rules."""
        return Described(function(self.table, start, size, rules), rules)

    def case(self, name: str, tests: str, *functions: Described, table: TableSpec | None = None, **more: Any) -> Case:
        """Return a case.

        :param table: with the functions; ``None``: sorted, as GNU ld writes it.
        """
        made = table or self.table._replace(functions=tuple(one.spec for one in functions))
        address = more.get("address", ADDRESS)
        data = encode(SectionSpec(address, more.get("tables", (made,))))
        return Case(
            name=f"{self.prefix}-{name}",
            tests=tests,
            version=self.version,
            abi=self.abi,
            address=address,
            section=data,
            expected=_expected(functions),
        )

    def cases(self) -> Iterator[Case]:
        """Yield all cases."""
        yield from self._values()
        yield from self._functions()
        yield from self._layouts()
        yield from self._compact()
        if self.version == 3:
            yield from self._version_3()
        if self.arch.pac_mask:
            yield from self._signed()

    def _values(self) -> Iterator[Case]:
        entry, rule = self.rule(8), self.rule
        yield self.case("one-row", "a function with one row", self.function((0, entry)))
        frame = [(0, entry), (1, rule(16, ra=-8, fp=-16)), (4, rule(16, True, ra=-8, fp=-16)), (0xF0, entry)]
        yield self.case("frame-pointer", "a function with a frame pointer", self.function(*frame))
        top = 8 if self.abi is AbiNumber.S390X_ENDIAN_BIG else 1
        for size, limit in ((1, 1 << 7), (2, 1 << 15), (4, 1 << 31)):
            for name, word in (("below", limit - 8), ("at", limit), ("lowest", -limit)):
                cfa = word * top if top > 1 else word
                if not -(1 << 31) <= cfa + 160 < 1 << 31:
                    continue
                for where, made in (("cfa", rule(cfa, ra=-8)), ("fp", rule(16, ra=-8, fp=word))):
                    try:
                        described = self.function((0, entry), (8, made))
                    except EncodeError:  # the value has no words of any size
                        continue
                    what = f"an offset of {word} words of {size} bytes hold, or just not"
                    yield self.case(f"{where}-{size}-{name}", what, described)

    def _functions(self) -> Iterator[Case]:
        entry, other = self.rule(8), self.rule(24, ra=-8, fp=-16)
        for last in (1, 254, 255, 256, 65534, 65535, 65536, 0x1000000):
            described = self.function((0, entry), (last, other), size=last + 16)
            yield self.case(f"row-at-{last}", "the size of row addresses", described)
        for count in (2, 7, 255, 256, 1000):
            rows = [(number, entry if number % 2 else other) for number in range(count)]
            yield self.case(f"rows-{count}", "a function with many rows", self.function(*rows, size=count))
        for count in (2, 3, 100):
            several = [self.function((0, entry), (4, other), start=_CODE + 32 * n, size=24) for n in range(count)]
            yield self.case(f"functions-{count}", "functions with gaps between them", *several)
        adjacent = [self.function((0, other if n % 2 else entry), start=_CODE + n, size=1) for n in range(5)]
        yield self.case("one-byte", "functions of one byte next to each other", *adjacent)
        yield self.case("late", "a first row that does not start at the function's start", self.function((4, other)))
        sizes = [16] if self.version == 1 else [1, 8, 16, 24, 255]
        for size in sizes:
            rows = [(0, entry)] + [(size - 1, other)] * (size > 1)
            made = function(self.table, _CODE, size * 7 + size // 2, rows)
            mask = Described(made._replace(pc_type=PcType.MASK, repetition_size=size), rows)
            following = self.function((0, entry), start=_CODE + 0x1000)
            yield self.case(f"mask-{size}", "a mask FDE: a PLT", mask, following)
        huge = self.function((0, entry), (8, other), size=0x7FFFFFF0)
        yield self.case("size-2GiB", "a function of nearly 2 GiB", huge)

    def _layouts(self) -> Iterator[Case]:
        pair = [self.function((0, self.rule(8)), (4, self.rule(24)), start=_CODE + n, size=32) for n in (0, 64)]
        table = self.table._replace(functions=tuple(one.spec for one in pair))
        low = [self.function((0, self.rule(8)), start=ADDRESS - 64 + n, size=16) for n in (0, 32)]
        yield self.case("before", "code at lower addresses than the section", *low)
        around = [low[0], pair[1]]
        yield self.case("around", "code on both sides of the section", *around)
        yield self.case("aux", "an auxiliary header", *pair, table=table._replace(aux_header=b"12345678"))
        yield self.case("fdes-moved", "a gap before the FDEs", *pair, table=table._replace(fde_offset=8))
        moved = table._replace(fre_offset=len(pair) * 20 + 8)
        yield self.case("fres-moved", "a gap before the FREs", *pair, table=moved)
        longer = table._replace(fre_size=64)
        yield self.case("fres-longer", "an FRE sub-section with bytes after the rows", *pair, table=longer)
        swapped = table._replace(functions=table.functions[::-1], flags=table.flags & ~Flag.FDE_SORTED)
        if self.version > 1:
            swapped = swapped._replace(flags=Flag.FDE_FUNC_START_PCREL)
        yield self.case("unsorted", "FDEs in no order, and no flag FDE_SORTED", *pair, table=swapped)
        if self.version > 1:
            other = table._replace(flags=table.flags ^ Flag.FDE_FUNC_START_PCREL)
            yield self.case("starts", "start fields relative to the other of field and section", *pair, table=other)
        parts = tuple(table._replace(functions=(one.spec,)) for one in pair)
        yield self.case("concatenated", "two headers in one section", *pair, tables=parts)
        wide = [one.spec._replace(address_size=4) for one in pair]
        yield self.case("wide", "row addresses wider than needed", *pair, table=table._replace(functions=tuple(wide)))
        yield self.case("high", "addresses in the upper half", *self._at(1 << 63), address=(1 << 63) + ADDRESS)
        yield self.case("no-functions", "a section without FDEs")

    def _at(self, base: int) -> list[Described]:
        return [self.function((0, self.rule(8)), start=base + _CODE + n, size=16) for n in (0, 64)]

    def _compact(self) -> Iterator[Case]:
        rows = [(0, self.rule(8)), (1, self.rule(16)), (4, self.rule(24, ra=-8, fp=-16))]
        equal = [self.function(*rows, start=_CODE + 64 * n, size=64) for n in range(5)]
        shared = with_shared_rows(self.table._replace(functions=tuple(one.spec for one in equal)))
        yield self.case("shared", "functions that share all of their rows", *equal, table=shared)
        lengths = [self.function(*rows[: n % 3 + 1], start=_CODE + 64 * n, size=64) for n in range(6)]
        shared = with_shared_rows(self.table._replace(functions=tuple(one.spec for one in lengths)))
        yield self.case("shared-in-part", "functions that share their first rows", *lengths, table=shared)
        many = [self.function(*rows, start=_CODE + 64 * n, size=64) for n in range(64)]
        shared = with_shared_rows(self.table._replace(functions=tuple(one.spec for one in many)))
        yield self.case("shared-by-many", "more rows than the sub-section has bytes", *many, table=shared)
        for most in (4, 8, 16):
            merged = compacted(self.table._replace(functions=tuple(one.spec for one in lengths)), _adjacent, most)
            name = f"merged-{most}"
            yield self.case(
                name, f"entries for several functions, of at most {most} rows", *lengths, table=merged.table
            )

    def _signed(self) -> Iterator[Case]:
        signed = [(0, self.rule(8)), (4, self.rule(16, ra=-8, fp=-16, signed=True)), (0x40, self.rule(8, signed=True))]
        made = self.function(*signed)
        yield self.case("signed", "signed return addresses", made)
        key = made._replace(spec=made.spec._replace(pauth_key=PauthKey.B))
        yield self.case("signed-b", "return addresses signed with key B", key)

    def _version_3(self) -> Iterator[Case]:
        entry = self.rule(8)
        yield self.case("outermost", "a row that marks the outermost frame", self.function((0, entry), (4, OUTERMOST)))
        yield self.case("all-outermost", "a function of the outermost frame", self.function((0, OUTERMOST)))
        trampoline = self.function((0, entry))
        signal = trampoline._replace(spec=trampoline.spec._replace(signal=True))
        yield self.case("signal", "a signal trampoline", signal)
        rowless = Described(trampoline.spec._replace(signal=True, rows=()), ())
        yield self.case("signal-rowless", "a signal trampoline without rows", rowless, *self._at(0x1000))
        for distance in (1 << 33, 1 << 47):
            yield self.case(
                f"far-{distance.bit_length()}", "code more than 2 GiB from the section", *self._at(distance)
            )
        ra, fp = entry.ra, self.arch.fp
        shapes = {
            "register": UnwindRule(RegisterRule(10, 8, False), ra, None),
            "memory": UnwindRule(RegisterRule(fp, -16, True), saved_at_cfa(-8), RegisterRule(fp, 0, True)),
            "ra-register": UnwindRule(RegisterRule(self.arch.sp, 16, False), RegisterRule(21, 0, False), None),
            "fp-register": UnwindRule(RegisterRule(self.arch.sp, 16, False), ra, RegisterRule(20, 0, False)),
            "fp-of-cfa": UnwindRule(RegisterRule(10, 8, False), saved_at_cfa(-16), RegisterRule(CFA, -24, True)),
            "large-register": UnwindRule(RegisterRule(31, 1000, False), saved_at_cfa(-8), None),
            "large-offset": UnwindRule(RegisterRule(10, 1 << 20, False), saved_at_cfa(-40000), None),
        }
        for name, rule in shapes.items():
            if self.abi is AbiNumber.S390X_ENDIAN_BIG and rule.cfa is not None:
                rule = rule._replace(cfa=rule.cfa._replace(offset=160 + rule.cfa.offset // 8 * 8))
            described = self.function((0, entry), (8, rule))
            yield self.case(f"flexible-{name}", "a flexible FDE", described)
        mixed = self.function((0, entry), (8, shapes["large-register"]), (16, OUTERMOST))
        if self.abi is not AbiNumber.S390X_ENDIAN_BIG:
            yield self.case("flexible-outermost", "the row of an outermost frame in a flexible FDE", mixed)


def _adjacent(end: int, start: int) -> bool:
    return end == start


def _expected(functions: Sequence[Described]) -> tuple[tuple[int, Row], ...]:
    """Return addresses, and the row that one of the functions has for each."""
    wanted = sorted({pc for one in functions for pc in one.addresses()})
    step = -(-len(wanted) // _MAX_ADDRESSES) or 1
    found = []
    for pc in wanted[::step] or [_CODE]:
        rows = [one.row(pc) for one in functions]
        found.append((pc, next((row for row in rows if row is not None), None)))
    return tuple(found)


def malformed() -> Iterator[Case]:
    """Yield sections that break one rule of ``lint`` each; the section of a rewritten file is as it was linked."""
    for rule in (rule for rule in RULES if rule is not CODE_REWRITTEN):
        subject = BROKEN[rule]()
        data = subject.data
        pcs = tuple((pc, None) for pc in range(0xFFF, 0x1082, 3))
        version, abi = (data[2], data[4]) if len(data) > 4 else (3, int(AbiNumber.AMD64_ENDIAN_LITTLE))
        yield Case(
            name=f"{rule.id}-{rule.name}",
            tests=rule.title,
            version=version,
            abi=abi,
            address=subject.address,
            section=data,
            expected=pcs,
            is_valid=False,
        )


def _malformed_old(version: int) -> Iterator[Case]:
    """Yield sections of version 1 or 2 that have another value in one field."""
    maker = Maker(version, AbiNumber.AMD64_ENDIAN_LITTLE)
    pair = [maker.function((0, maker.rule(8)), (4, maker.rule(24, fp=-16)), start=_CODE + n, size=32) for n in (0, 64)]
    good = maker.case("good", "", *pair)
    header, entry = header_format.SIZES[version], header_format.FDE_SIZES[version]
    row = header + 2 * entry
    for name, tests, offset, layout, value in (
        ("magic", "another magic number", 0, "H", 0x1234),
        ("flags", "unknown flags", 3, "B", 0xFF),
        ("abi", "an unknown ABI", 4, "B", 99),
        ("fdes", "more FDEs than the section has", 8, "I", 1 << 20),
        ("fdes-most", "the largest number of FDEs", 8, "I", 0xFFFFFFFF),
        ("fres", "another number of FREs", 12, "I", 1 << 20),
        ("fre-length", "an FRE sub-section that ends after the section", 16, "I", 1 << 20),
        ("fde-offset", "FDEs after the section", 20, "I", 1 << 20),
        ("fre-offset", "FREs after the section", 24, "I", 1 << 20),
        ("fre-offset-0", "FREs in the place of the FDEs", 24, "I", 0),
        ("rows-offset", "rows after the section", header + 8, "I", 1 << 20),
        ("rows", "more rows than there are", header + 12, "I", 1 << 20),
        ("rows-0", "a function without rows", header + 12, "I", 0),
        ("fre-type", "an unknown FRE type", header + 16, "B", 3),
        ("mask", "a mask FDE, in version 2 of repetition size 0", header + 16, "B", 0x10),
        ("row-order", "a row that starts before its predecessor", row + 3, "B", 0),
        ("row-after", "a row after the function", row + 3, "B", 200),
        ("word-size", "data words of the invalid size 3", row + 1, "B", 0x63),
        ("words", "15 data words", row + 1, "B", 0x1F),
    ):
        data = bytearray(good.section)
        struct.pack_into(f"<{layout}", data, offset, value)
        yield good._replace(name=f"v{version}-malformed-{name}", tests=tests, section=bytes(data), is_valid=False)
    short = good.section[: row + 2]
    yield good._replace(name=f"v{version}-malformed-short", tests="rows cut off", section=short, is_valid=False)


@functools.cache
def cases() -> tuple[Case, ...]:
    """Return all cases.  No two have the same name."""
    found = (case for version, abi in _COMBINATIONS for case in Maker(version, abi).cases())
    return (*found, *_malformed_old(1), *_malformed_old(2), *malformed())
