"""Measures the size of SFrame made from the DWARF CFI of files: plain, compacted, and in other layouts.

    python -m lab.convert.sizes [--count N] [--rows K] [--version-3] [FILE ...]

Without files: libraries of three machines.  Each section in another layout is read at every address at which a rule
changes, which takes most of the time; ``--version-3`` leaves the other layouts out.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Callable, NamedTuple

from lab.cfi.libraries import FOLDERS, libraries
from lab.convert.layouts import LAYOUTS, VERSION_3, Layout, Written, lookup, write
from lab.convert.libraries import FIRST, PYTHON
from lab.convert.lookup_times import addresses, nanoseconds
from sframe_unwind import elf
from sframe_unwind.convert.source import DWARF
from sframe_unwind.convert.to_sframe import Wanted, conversion
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.cfi import DEBUG_FRAME, EH_FRAME
from sframe_unwind.errors import SFrameError
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.encode import TableSpec
from sframe_unwind.sframe.section import Section
from sframe_unwind.translation.compact import MAX_ROWS, Compact

_PERF = Path("/usr/bin/perf")
_OTHERS = ("libcrypto.so.3",)
_MACHINES = ("amd64", "aarch64", "s390x")
_UNITS = {"amd64": 1, "aarch64": 4, "s390x": 2}
"""The alignment of instructions, in bytes."""
_ADDRESSES = 10_000
"""Number of lookups whose time is measured."""


TOGETHER, MEAN = "all together", "mean of the files"


class Sizes(NamedTuple):
    """Sizes in bytes."""

    dwarf: int
    """``.eh_frame`` and ``.eh_frame_hdr``."""
    plain: int
    shared: int
    divided: int
    layouts: tuple[int, ...]
    """Sizes of :data:`LAYOUTS`, with shared rows and entries divided anew."""
    entropy: int
    """A bound for all layouts that code distances between rows, and rules by the rule before, independently."""

    @property
    def columns(self) -> tuple[int, ...]:
        """Return the sizes in the order of the table."""
        return self.plain, self.shared, self.divided, *self.layouts, self.entropy, self.dwarf


class Measured(NamedTuple):
    """One file."""

    path: Path
    sizes: Sizes
    slower: tuple[float, ...]
    """Time of a lookup relative to version 3 with an entry for each function: with entries divided anew, and then in
    each layout."""

    def __str__(self) -> str:
        plain, *others = self.sizes.columns
        return f"| `{self.path.name}` | {plain:,} | {' | '.join(f'{one / plain:.2f}' for one in others)} |"


def measure(path: Path, max_rows: int, layouts: Sequence[Layout] = LAYOUTS) -> Measured:
    """Measure a file.

    :param layouts: other layouts to measure.
    :raises SFrameError: it cannot be converted.
    """
    with elf.opened(path) as binary:
        return Measured(path, *measured(binary, max_rows, layouts))


def measured(binary: ElfBinary, max_rows: int, layouts: Sequence[Layout]) -> tuple[Sizes, tuple[float, ...]]:
    """Measure an open file; return the fields of :class:`Measured`.  The section is proved.

    :raises SFrameError: it cannot be converted.
    """
    # With a reader's name, rows are also shared for big-endian machines.
    made = conversion(binary, Wanted(source=DWARF, consumers=("spec",), max_rows=max_rows))
    made.proved([Section(made.section, made.address)])
    dwarf = sum(map(binary.size_of, (EH_FRAME, DEBUG_FRAME, ".eh_frame_hdr")))
    unit, fills = _UNITS[binary.arch.name], binary.padding.fills
    compact = made.compact
    assert isinstance(compact, Compact)  # as requested
    # As in entries divided anew, padding has the rule of the code before it: an entry for a gap would add nothing.
    table = _without_padding(compact.table, fills)
    written = [write(table, layout) for layout in layouts]
    for one in written:
        _check(table, one)
    sizes = Sizes(dwarf, *compact.sizes, tuple(one.size for one in written), _entropy(table, unit))
    if not layouts:
        return sizes, ()
    plain = conversion(binary, Wanted(source=DWARF, consumers=("spec",))).made.table
    sections = [write(plain, VERSION_3), write(table, VERSION_3), *written]
    first, *others = nanoseconds(sections, addresses(plain, _ADDRESSES))
    return sizes, tuple(one / first for one in others)


def _without_padding(table: TableSpec, is_padding: Callable[[int, int], bool]) -> TableSpec:
    """Return a table whose functions extend over the padding after them."""
    functions = list(table.functions)
    for number, (one, following) in enumerate(zip(functions, functions[1:])):
        if one.pc_type is PcType.INC and is_padding(one.start + one.size, following.start):
            functions[number] = one._replace(size=following.start - one.start)
    return table._replace(functions=tuple(functions))


def _places(table: TableSpec) -> Iterator[tuple[int, tuple[int, tuple[int, ...]]]]:
    """Yield each address at which a row begins, and the row."""
    for one in table.functions:
        for row in one.rows:
            yield one.start + row.start, (row.info, row.words)


def _check(table: TableSpec, written: Written) -> None:
    """Read a section at each address at which a row begins, and at the end of each function."""
    starts = {one.start for one in table.functions}
    for pc, row in _places(table):
        if lookup(written, pc) != row:
            raise AssertionError(f"{written.layout.name}: another row at {pc:#x}")
    for end in (one.start + one.size for one in table.functions):
        if end not in starts and lookup(written, end) is not None:
            raise AssertionError(f"{written.layout.name}: a row at {end:#x}, where no function is")


def _entropy(table: TableSpec, unit: int) -> int:
    """Return the sum of the entropies of distances between changes, and of rules by the rule before, in bytes.

    :param unit: alignment of instructions, in bytes.
    """
    distances: Counter[object] = Counter()
    rules: defaultdict[object, Counter[object]] = defaultdict(Counter)
    changes = list(_changes(table))
    for (before, rule), (at, following) in zip(changes, changes[1:]):
        distances[(at - before) // unit] += 1
        rules[rule][following] += 1
    return math.ceil((_bits(distances) + sum(map(_bits, rules.values()))) / 8)


def _changes(table: TableSpec) -> Iterator[tuple[int, object]]:
    """Yield each address from which another rule applies, and the rule; ``None``: no rule."""
    rule: object = None
    end = table.functions[0].start
    for one in table.functions:
        if one.start > end:
            rule = None
            yield end, rule
        kind = one.fde_type, one.pauth_key, one.signal, one.pc_type, one.repetition_size
        for row in one.rows:
            following = (kind, row.info, row.words)
            if following != rule:
                rule = following
                yield one.start + row.start, rule
        end = one.start + one.size


def _bits(counts: Counter[object]) -> float:
    """Return the entropy of a sequence, in bits."""
    total = sum(counts.values())
    return sum(count * math.log2(total / count) for count in counts.values())


def files(count: int) -> Iterator[tuple[str, Path]]:
    """Yield files of three machines: known ones, and libraries of all sizes."""
    for machine in _MACHINES:
        named = [(FOLDERS[machine] / name).resolve() for name in (*FIRST, *_OTHERS)]
        if machine == "amd64":
            named += [PYTHON, _PERF]
        found = [path for path in named if path.exists()]
        yield from ((machine, path) for path in found)
        for item in libraries(machine, count + len(found))[-count:]:
            if item.path not in found:
                yield machine, item.path


def main() -> None:
    """Measure, and print a table for each machine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, help="files to measure instead")
    parser.add_argument("--count", type=int, default=30, help="libraries of each machine besides the known ones")
    parser.add_argument("--rows", type=int, default=MAX_ROWS, help="most rows of an entry for several functions")
    parser.add_argument("--version-3", action="store_true", help="leave the other layouts out")
    options = parser.parse_args()
    layouts = () if options.version_3 else LAYOUTS
    done: defaultdict[str, list[Measured]] = defaultdict(list)
    for machine, path in [("given", path) for path in options.files] or files(options.count):
        try:
            found = measure(path, options.rows, layouts)
        except SFrameError as error:
            print(f"{path}: {error}")
            continue
        if machine not in done:
            names = " | ".join(["shared", "divided", *(layout.name for layout in layouts), "entropy", "DWARF"])
            print(f"\n{machine}\n\n| file | plain, bytes | {names} |")
            print(f"|---|--:|{'--:|' * (len(layouts) + 4)}")
        done[machine].append(found)
        print(found, flush=True)
    for machine, all_of_it in done.items():
        print(f"\n{machine}")
        rows = [one.sizes for one in all_of_it]
        print(summary(TOGETHER, rows, True), summary(MEAN, rows, False), sep="\n")
        for name, times in zip(
            ["divided", *(layout.name for layout in layouts)], zip(*(one.slower for one in all_of_it))
        ):
            print(f"lookup, {name}: {min(times):.2f} to {max(times):.2f}, median {statistics.median(times):.2f}")


def summary(name: str, files_of_it: Sequence[Sizes], weighted: bool) -> str:
    """Return a line of the table for several files.

    :param weighted: weight the files by their size; ``False``: return the mean of the files.
    """
    rows = [one.columns for one in files_of_it]
    total = sum(row[0] for row in rows)
    columns = range(1, len(rows[0]))
    if weighted:
        ratios = [sum(row[column] for row in rows) / total for column in columns]
    else:
        ratios = [statistics.mean(row[column] / row[0] for row in rows) for column in columns]
    return f"| {name} ({len(rows):,}) | {total:,} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |"


if __name__ == "__main__":
    main()
