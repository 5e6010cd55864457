"""Draws the frame of a function at one instruction: its slots from the CFA down to the stack pointer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.listing import Refuted
from sframe_unwind.report.notation import describe_register_rule
from sframe_unwind.report.rule_cells import VALUE_NAMES, VALUES
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule

_SAVED = "saved "
_ANY = ""
"""In place of the title of a table, for registers that only DWARF CFI tracks."""


class PlacedRule(NamedTuple):
    """A rule of one table."""

    title: str
    """Title of the table: ``SFrame``."""
    rule: UnwindRule
    others: tuple[tuple[int, RegisterRule], ...] = ()
    """DWARF numbers and rules of further registers, if the table has them."""


class Slot(NamedTuple):
    """A part of the frame."""

    offset: int
    """Its lowest address relative to the base register, in bytes."""
    size: int
    """In bytes."""
    label: str
    """The contents."""
    is_saved: bool
    """Whether a register or the return address is saved there, according to a table."""


class Picture(NamedTuple):
    """The frame relative to one register, by the tables that compute the CFA from it."""

    base: str
    """The name of the register."""
    tables: tuple[str, ...]
    slots: tuple[Slot, ...]
    """From the highest address down."""
    marks: tuple[tuple[int, str], ...]
    """Addresses relative to the register, each with the pointers to it: the CFA of each table, SP, FP."""
    elsewhere: tuple[str, ...]
    """In words, the values that are in registers, or at places whose distance from the register is not known."""


def pictures(rules: Sequence[PlacedRule], arch: Arch) -> list[Picture]:
    """Return a picture for each register from which a table computes the CFA.

    :param rules: the rules of the tables at one instruction.
    """
    groups: dict[int, list[PlacedRule]] = {}
    for placed in rules:
        cfa = placed.rule.cfa
        if cfa is not None and not cfa.in_memory and cfa.base >= 0:
            groups.setdefault(cfa.base, []).append(placed)
    return [_Drawing(base, group, arch).picture() for base, group in groups.items()]


class _Drawing:
    """Collects the contents of a frame, by address relative to the base register."""

    def __init__(self, base: int, rules: Sequence[PlacedRule], arch: Arch) -> None:
        self._base = base
        self._rules = rules
        self._arch = arch
        self._contents: dict[int, dict[str, list[str]]] = {}
        """By address and contents, the tables with these contents."""
        self._elsewhere: dict[str, list[str]] = {}
        self._cfas: dict[int, list[str]] = {}
        for placed in rules:
            self._add(placed)

    def _add(self, placed: PlacedRule) -> None:
        rule, arch = placed.rule, self._arch
        assert rule.cfa is not None
        cfa = rule.cfa.offset
        self._cfas.setdefault(cfa, []).append(placed.title)
        saved = "signed return address" if rule.ra_signed else "return address"
        places: list[tuple[str, RegisterRule | None]] = [(saved, rule.ra)]
        if rule.ra is None and arch.ra is not None:
            places = [(saved, RegisterRule(arch.ra, 0, False))]
        if rule.fp is not None:
            places.append((f"saved {arch.register_name(arch.fp)}", rule.fp))
        for label, place in places:
            if place is not None:
                self._put(label, place, cfa, placed.title)
        for number, place in placed.others:
            self._put(f"saved {arch.register_name(number)}", place, cfa, _ANY)

    def _put(self, label: str, place: RegisterRule, cfa: int, title: str) -> None:
        if place.in_memory and place.base in (CFA, self._base):
            at = place.offset + (cfa if place.base == CFA else 0)
            self._contents.setdefault(at, {}).setdefault(label, []).append(title)
        else:
            what = label[len(_SAVED) :] if label.startswith(_SAVED) else label
            text = f"{what} {'' if place.in_memory else 'in '}{describe_register_rule(place, self._arch)}"
            self._elsewhere.setdefault(text, []).append(title)

    def picture(self) -> Picture:
        slots = tuple(self._slots())
        marks = [(at, "CFA" + self._by(tables)) for at, tables in self._cfas.items()]
        marks.append((0, self._arch.register_name(self._base)))
        return Picture(
            base=self._arch.register_name(self._base),
            tables=tuple(placed.title for placed in self._rules),
            slots=slots,
            marks=tuple(sorted(marks, reverse=True)),
            elsewhere=tuple(text + self._by(tables) for text, tables in self._elsewhere.items()),
        )

    def _by(self, tables: list[str]) -> str:
        """Return the names of some tables in words; empty: these are all tables."""
        return "" if len(tables) == len(self._rules) or _ANY in tables else f" by {' and '.join(tables)}"

    def _slots(self) -> Iterator[Slot]:
        at = max(*self._cfas, *(at + WORD_SIZE for at in self._contents), 0)
        for start in sorted(self._contents, reverse=True):
            if start + WORD_SIZE < at:
                yield self._area(start + WORD_SIZE, at)
            label = ", ".join(what + self._by(tables) for what, tables in self._contents[start].items())
            yield Slot(start, WORD_SIZE, label, True)
            at = min(at, start)
        if at > 0:
            yield self._area(0, at)

    def _area(self, start: int, end: int) -> Slot:
        is_callers = start >= max(self._cfas)
        return Slot(start, end - start, "of the caller" if is_callers else "locals, spilled registers", False)


def lines(picture: Picture) -> list[str]:
    """Return a picture as lines of text, without a title.

    Offsets are relative to the CFA; where the tables have several, to the base register.
    """
    cfas = [at for at, text in picture.marks if text.startswith("CFA")]
    origin, name = (cfas[0], "CFA") if len(cfas) == 1 else (0, picture.base)
    labels = [f"{slot.label}, {slot.size} bytes" if not slot.is_saved else slot.label for slot in picture.slots]
    width = max(map(len, labels), default=0) + 2
    border = f"{'':>12}+{'-' * width}+"
    found = []
    edge = picture.slots[0].offset + picture.slots[0].size if picture.slots else 0
    found.append(border + _marks(picture, edge, edge + 1, edge))
    for slot, label in zip(picture.slots, labels):
        start = slot.offset
        marks = _marks(picture, start + 1, start + slot.size, start)
        found.append(f"{_offset(name, start - origin):>11} | {label:<{width - 2}} |{marks}")
        found.append(border + _marks(picture, start, start + 1, start))
    return [line.rstrip() for line in (*found, *(f"{'':>12}{text}" for text in picture.elsewhere))]


def heading(place: str, picture: Picture, refuted: Sequence[Refuted]) -> str:
    """Return the title of a picture, with the values by which it is drawn although the code refutes them.

    :param place: the frame in words.
    :param refuted: the values that the code refutes, of all tables.
    """
    tables = {
        what: [one.table for one in refuted if one.what == what and one.table in picture.tables] for what in VALUES
    }
    wrong = [f"the {VALUE_NAMES[what]} by {' and '.join(by)}" for what, by in tables.items() if by]
    said = f"; the code refutes {', '.join(wrong)}" if wrong else ""
    return f"{place}, by {' and '.join(picture.tables)}{said}:"


def _offset(name: str, offset: int) -> str:
    return f"{name}{offset:+d}"


def _marks(picture: Picture, low: int, high: int, at: int) -> str:
    """Return the names of the pointers to addresses in ``[low, high)``, as the end of a line."""
    found = [text + (f"{mark - at:+d}" if mark != at else "") for mark, text in picture.marks if low <= mark < high]
    return f" <-- {', '.join(found)}" if found else ""


def to_json(picture: Picture, refuted: Sequence[Refuted] = ()) -> dict[str, Any]:
    """Return the JSON object of a picture; addresses are relative to the base register.

    :param refuted: the values that the code refutes, of all tables.
    """
    return {
        "base": picture.base,
        "tables": list(picture.tables),
        "slots": [slot._asdict() for slot in picture.slots],
        "marks": [{"offset": at, "text": text} for at, text in picture.marks],
        "elsewhere": list(picture.elsewhere),
        "refuted": [one._asdict() for one in refuted if one.table in picture.tables],
    }
