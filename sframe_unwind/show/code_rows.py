"""Makes the column of the machine code for functions that no table describes: the rows that the code itself gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.arch import Arch
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.rows.at_address import CodeRows
from sframe_unwind.code.rows.function import Basis
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.listing import Note, Refuted
from sframe_unwind.report.rule_cells import RuleCells, rule_cells

_NOT_KNOWN = RuleCells("?", "?", "?")
_TITLES = {Basis.PROVED: "proved", Basis.BY_ABI: "by the ABI of callees"}


class FunctionRows(NamedTuple):
    """The rows of one function by its code alone: there is no table to agree or to disagree with."""

    rows: CodeRows
    arch: Arch
    data: str
    """The rows in numbers."""

    def cells(self, at: int, by_table: Sequence[RuleCells | None]) -> RuleCells | None:  # noqa: ARG002
        """Return the rule at an instruction; ``?``: none is known."""
        found = self.rows.at(at)
        return _NOT_KNOWN if found is None else rule_cells(found.rule, self.arch)

    def refuted(self, at: int) -> tuple[Refuted, ...]:  # noqa: ARG002
        """Return the values of tables that the code refutes: none."""
        return ()

    def side(self, at: int, what: str) -> str:  # noqa: ARG002
        """Return the one of two tables with which the code agrees; empty, since there are no tables."""
        return ""

    def notes(self, at: int) -> Iterator[Note]:  # noqa: ARG002
        """Yield the notes about tables: none."""
        return iter(())


def function_rows(rows: CodeRows, arch: Arch, part: CodeRange) -> FunctionRows:
    """Return the rows of one function by its code."""
    found = [(row.rule, row.basis) for at in range(*part) if (row := rows.at(at)) is not None]
    begun = [basis for number, (rule, basis) in enumerate(found) if not number or found[number - 1][0] != rule]
    counts = ", ".join(f"{begun.count(basis)} {title}" for basis, title in _TITLES.items() if basis in begun)
    return FunctionRows(rows, arch, f"no table; rows of the code: {counts}" if counts else f"no table{_why(rows)}")


def _why(rows: CodeRows) -> str:
    return f"; {rows.why}" if rows.why else "; the code gives no rows"
