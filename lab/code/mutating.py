"""Rows of a table, each changed in one field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sframe_unwind import unwind_rule
from sframe_unwind.arch import Arch
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.judge.judgement import RowRule
from sframe_unwind.code.judge.tables import Rows, RuleTable
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

_BY = 8
"""Number of bytes by which offsets are moved."""


class Mutation(NamedTuple):
    """One row with one change."""

    function: CodeRange
    row: int
    field: str
    before: UnwindRule
    rule: UnwindRule
    """The changed rule."""
    rows: Rows

    @property
    def what(self) -> str:
        """Return the value that is found in another way: ``cfa``, ``ra`` or ``fp``."""
        return self.field.partition(" ")[0]

    @property
    def addresses(self) -> range:
        """Return the addresses of the row."""
        starts = [*self.rows.starts, self.function.end]
        return range(starts[self.row], starts[self.row + 1])


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
    """Yield a rule with one field changed, and the name of the field."""
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
                    yield Mutation(
                        function=function,
                        row=number,
                        field=field,
                        before=rule,
                        rule=other,
                        rows=Rows(rows.starts, rules),
                    )
