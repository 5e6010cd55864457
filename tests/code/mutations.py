"""How many wrong rows the code shows: each row of a program is changed in one field, one at a time.

python -m tests.code.mutations FILE [--most N]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sframe_unwind import elf, unwind_rule
from sframe_unwind.arch import Arch
from sframe_unwind.code.checking import Checker
from sframe_unwind.code.elf_image import exception_tables, image_of
from sframe_unwind.code.findings import SFRAME
from sframe_unwind.code.interpretation import Interpreter
from sframe_unwind.code.judgement import Judgement, RowRule
from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import MACHINES
from sframe_unwind.code.ranges import CodeRange, CodeRanges
from sframe_unwind.code.tables import Rows, RuleTable
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule
from sframe_unwind.verify.code_tables import SFrameTable

_BY = 8
"""How far offsets are moved, in bytes."""


class Mutation(NamedTuple):
    """One row with one change."""

    function: CodeRange
    row: int
    field: str
    rows: Rows


class Fate(NamedTuple):
    """What became of a mutation."""

    mutation: Mutation
    worst: Judgement
    """At the instructions of the row."""


class Substitute:
    """A table in which one function has other rows."""

    def __init__(self, table: RuleTable) -> None:
        self._table = table
        self.mutation: Mutation | None = None

    def ranges(self) -> Iterable[tuple[int, int]]:
        return self._table.ranges()

    def rows(self, function: CodeRange) -> Rows:
        if self.mutation is not None and self.mutation.function == function:
            return self.mutation.rows
        return self._table.rows(function)

    def is_signal(self, function: CodeRange) -> bool:
        return self._table.is_signal(function)


def changed(rule: UnwindRule, arch: Arch) -> Iterator[tuple[str, UnwindRule]]:
    """Yield a rule with one field changed, and which."""
    cfa = rule.cfa
    if cfa is None:
        return
    for by in (_BY, -_BY):
        yield "cfa offset", rule._replace(cfa=cfa._replace(offset=cfa.offset + by))
        if rule.ra is not None:
            yield "ra offset", rule._replace(ra=rule.ra._replace(offset=rule.ra.offset + by))
        if rule.fp is not None:
            yield "fp offset", rule._replace(fp=rule.fp._replace(offset=rule.fp.offset + by))
    other = arch.fp if cfa.base == arch.sp else arch.sp
    yield "cfa register", rule._replace(cfa=cfa._replace(base=other))
    if rule.fp is None:
        yield "fp saved", rule._replace(fp=RegisterRule(unwind_rule.CFA, -16, True))
    else:
        yield "fp unchanged", rule._replace(fp=None)
    if arch.ra is not None:
        ra = RegisterRule(unwind_rule.CFA, -8, True) if rule.ra is None else None
        yield "ra saved" if rule.ra is None else "ra unchanged", rule._replace(ra=ra)
    if arch.pac_mask:
        yield "ra signed", rule._replace(ra_signed=not rule.ra_signed)


def mutations(table: RuleTable, arch: Arch) -> Iterator[Mutation]:
    """Yield every row of a table changed in every way."""
    for start, end in table.ranges():
        function = CodeRange(start, end)
        rows = table.rows(function)
        for number, rule in enumerate(rows.rules):
            if isinstance(rule, UnwindRule):
                for field, other in changed(rule, arch):
                    rules: list[RowRule | None] = [*rows.rules]
                    rules[number] = other
                    yield Mutation(function, number, field, Rows(rows.starts, rules))


def fates(path: Path, most: int) -> Iterator[Fate]:
    """Yield what becomes of the mutations of a file, evenly chosen among all if there are too many."""
    with elf.opened(path) as binary:
        arch = binary.arch
        machine = MACHINES[arch.name]
        table = SFrameTable(binary.sframe)
        image = image_of(binary, machine)
        landing_pads = exception_tables(binary, image)
        substitute = Substitute(table)
        interpreter = Interpreter(image, machine, Lifter(machine), CodeRanges(table.ranges()), landing_pads)
        checker = Checker(interpreter, {SFRAME: substitute})
        found = list(mutations(table, arch))
        for mutation in found[:: max(len(found) // most, 1)]:
            substitute.mutation = mutation
            starts = [*mutation.rows.starts, mutation.function.end]
            first, last = starts[mutation.row], starts[mutation.row + 1]
            verdicts = checker.part(mutation.function).verdicts[SFRAME]
            yield Fate(
                mutation,
                max((one.worst for pc, one in verdicts.items() if first <= pc < last), default=Judgement.PROVED),
            )


def main() -> None:
    """Print how many are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=2000)
    options = parser.parse_args()
    for path in options.files:
        counts: Counter[tuple[str, str]] = Counter()
        for fate in fates(path, options.most):
            counts[fate.mutation.field, fate.worst.name.lower()] += 1
        total, wrong = sum(counts.values()), sum(n for (_, worst), n in counts.items() if worst == "wrong")
        print(f"{path}: {wrong} of {total} found")
        for (field, worst), number in sorted(counts.items()):
            print(f"  {field}: {number} {worst}")


if __name__ == "__main__":
    main()
