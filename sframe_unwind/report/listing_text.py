"""Formats a listing as text: the rules in the margin, the instruction, and sentences about what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.listing import DIFFERS, ODD, PLAIN, UNKNOWN, WRONG, Listing, Row, Run, SourceLine
from sframe_unwind.report.rule_cells import VALUES, RuleCells
from sframe_unwind.report.terminal import printable

_HEADINGS = ("CFA", "FP", "RA")
_LEAST = (8, 5, 5)
"""Least widths of the columns of a rule."""
_NO_RULE = RuleCells("-", "-", "-")
_GAP = "   "


class Style(NamedTuple):
    """The escape sequences for the parts of a listing; empty: no colours."""

    title: str = ""
    faint: str = ""
    rule: str = ""
    wrong: str = ""
    unknown: str = ""
    end: str = ""


PLAIN_STYLE = Style()
COLOURED = Style(
    title="\x1b[1;33m", faint="\x1b[2m", rule="\x1b[36m", wrong="\x1b[1;31m", unknown="\x1b[35m", end="\x1b[m"
)
_NOTE_STYLES = {DIFFERS: "wrong", WRONG: "wrong", UNKNOWN: "unknown", ODD: "unknown"}


class Format(NamedTuple):
    """The parts of a listing that the text shows."""

    style: Style = PLAIN_STYLE
    raw: bool = False
    """Show the bytes of each instruction."""
    marked: frozenset[int] = frozenset()
    """The addresses of instructions that get an arrow."""


def to_text(listing: Listing, form: Format = Format()) -> list[str]:  # noqa: B008  # it cannot change
    """Return the lines of a listing."""
    style = form.style
    section = f"({printable(listing.section)})" if listing.section else "??"  # in a process
    name = printable(listing.name) or section
    found = [f"{style.title}{listing.place} <{name}>, {listing.size} bytes{style.end if style.title else ''}"]
    found += [f"  {title}: {printable(text)}" for title, text in zip(listing.columns, listing.data)]
    return found + _Lines(listing, form).all()


class _Lines:
    """Formats the rows of one listing, in columns that are as wide as its rules."""

    def __init__(self, listing: Listing, form: Format) -> None:
        self._listing = listing
        self._form = form
        used = {cells for row in listing.special if row.begins for cells in row.rules if cells is not None}
        self._widths = (*(max([least, *map(len, column)]) for least, column in zip(_LEAST, zip(*used))),) or _LEAST
        self._blank = _blank(self._widths)
        self._digits = len(f"{listing.start + listing.size:x}")
        self._raw_width = max((len(row.raw) for row in listing.rows), default=0) * 2 if form.raw else 0
        self._without_rules = _GAP.join([self._blank] * len(listing.columns))

    def all(self) -> list[str]:
        style, raw_too, marked = self._form
        found, digits = [*self._head()], self._digits
        plain = f"   %{digits}x  {self._without_rules}  %s"
        for part in self._listing.parts:
            if not isinstance(part, Run):
                if part.extra is PLAIN and part.text and not raw_too and part.address not in marked:
                    rules = _margin(style, self._widths, part.rules, begins=part.begins, differs=())
                    found.append(f"   {part.address:{digits}x}  {rules}  {part.text}".rstrip())
                else:
                    found += self._row(part)
            elif raw_too or not part.texts[0] or not marked.isdisjoint(part.addresses):
                for row in part.rows():
                    found += self._row(row)
            else:
                found += map(plain.__mod__, zip(part.addresses, part.texts))
        return found

    def _head(self) -> Iterator[str]:
        style, width = self._form.style, len(self._blank)
        titles = _GAP.join(f"{title:<{width}}" for title in self._listing.columns)
        names = " ".join(f"{name:<{size}}" for name, size in zip(_HEADINGS, self._widths))
        margin = " " * (self._digits + 5)
        yield f"{style.faint}{margin}{titles}".rstrip() + style.end
        yield f"{style.faint}{margin}{_GAP.join([names] * len(self._listing.columns))}".rstrip() + style.end

    def _row(self, row: Row) -> Iterator[str]:
        style, extra = self._form.style, row.extra
        for label in extra.labels:
            yield f"{style.title}{'':{self._digits + 5}}<{printable(label)}>:{style.end if style.title else ''}"
        for place in extra.source:
            yield f"{style.faint}{'':{self._digits + 5}}{_source(place)}{style.end}"
        kinds = {note.kind for note in extra.notes}
        sign = "!" if extra.differs or kinds & {DIFFERS, WRONG} else "?" if UNKNOWN in kinds else " "
        is_marked = row.address in self._form.marked and row.raw
        arrow = f"{sign.strip() or '='}>" if is_marked else f"{sign} "
        rules = _margin(style, self._widths, row.rules, begins=row.begins, differs=extra.differs)
        raw = f"{row.raw.hex():<{self._raw_width}}  " if self._raw_width else ""
        text = row.text or (row.raw.hex(" ") if not raw else "") if row.raw else "(inside this instruction)"
        colour = style.wrong if sign == "!" else ""
        yield (
            f"{colour}{arrow}{style.end if colour else ''} {row.address:{self._digits}x}  {rules}  {raw}{text}".rstrip()
        )
        indent = " " * (self._digits + 5)
        yield from (f"{indent}{self._without_rules}    {printable(text)}" for text in extra.relocations)
        yield from (f"{indent}{style.rule}{text}{style.end}" for text in extra.values)
        for note in extra.notes:
            yield f"{indent}{getattr(style, _NOTE_STYLES[note.kind])}^ {printable(note.text)}{style.end}"


@lru_cache(maxsize=1 << 12)  # most functions have the same rules
def _margin(
    style: Style, widths: tuple[int, ...], rules: tuple[RuleCells | None, ...], begins: int, differs: tuple[str, ...]
) -> str:
    """Return the columns with the rules that begin at a row."""
    return _GAP.join(
        _rule(style, widths, cells, differs) if begins >> number & 1 else _blank(widths)
        for number, cells in enumerate(rules)
    )


def _rule(style: Style, widths: tuple[int, ...], cells: RuleCells | None, differs: tuple[str, ...]) -> str:
    """Return the rule of a column."""
    parts = []
    for what, cell, width in zip(VALUES, cells or _NO_RULE, widths):
        colour = style.wrong if what in differs and cells is not None else style.rule
        parts.append(f"{colour}{cell:<{width}}{style.end}" if colour and cell else f"{cell:<{width}}")
    return " ".join(parts)


def _blank(widths: tuple[int, ...]) -> str:
    return " " * (sum(widths) + len(widths) - 1)


def _source(place: SourceLine) -> str:
    file, line, function, text = place
    where = f"{printable(file)}:{line}" + (f" in {printable(function)}" if function else "")
    return f"{where}   {printable(text.strip())}".rstrip()
