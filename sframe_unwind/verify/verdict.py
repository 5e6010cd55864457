"""The result of comparing the SFrame of one file with its DWARF CFI."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

from sframe_unwind.elf import SECTION_NAME
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.errors import counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.verify.terms import SIDES, Gap, Side

if TYPE_CHECKING:  # it brings the interpreter of machine code along
    from sframe_unwind.verify.code_report import CodeReport
    from sframe_unwind.verify.orc_report import OrcReport


class Outcome(str, Enum):
    """The outcome of the comparison for a function."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    SFRAME_ONLY = "SFrame only"
    DWARF_ONLY = "DWARF only"
    NOT_EXPRESSIBLE = "not expressible"
    """Only DWARF CFI describes it, for a known reason: SFrame cannot express its rules."""
    NOT_COMPARED = "not compared"
    """Its SFrame or its CFI cannot be decoded."""
    DESCRIBED = "described"
    """One or both describe it, and were not compared with each other."""
    IN_PART = "covered in part"
    """Both describe the function, but one of them leaves out a part of it."""


class Words(NamedTuple):
    """A rule in words."""

    cfa: str
    ra: str
    fp: str


class Line(NamedTuple):
    """The rules of both tables at one address, where they differ."""

    spot: FileAddress
    sframe: Words
    dwarf: Words
    differs: tuple[str, ...]
    """The values that differ, of ``cfa``, ``ra`` and ``fp``; none: the rules agree."""
    code: Words | None = None
    """The result of the check against machine code; ``None``: there was no such check."""
    orc: Words | None = None
    """The rules of ORC that the check against machine code shows to be wrong; ``None``: ORC was not checked."""


class Disagreement(NamedTuple):
    """One value in which the two tables differ at one address."""

    spot: FileAddress
    function: str
    """Name of the function and offset from its start; empty: no symbol covers the address."""
    what: str
    """``cfa``, ``ra`` or ``fp``."""
    sframe: str
    dwarf: str
    code: Side | None = None
    """The table with which the machine code agrees; ``None``: there was no such check."""

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json``."""
        code = {} if self.code is None else {"code": self.code.value}
        return {
            "address": self.spot.address,
            "section": self.spot.section,
            "function": self.function,
            "what": self.what,
            "sframe": self.sframe,
            "dwarf": self.dwarf,
            **code,
        }


class Function(NamedTuple):
    """A function that at least one of the two tables describes, or the part of one that only one of them describes."""

    spot: FileAddress
    size: int
    """Size in bytes."""
    name: str
    """Empty: no symbol covers the address; or the function agrees, and was not to be listed."""
    outcome: Outcome
    reason: str
    """Why only one table describes it; empty: not known."""
    lines: tuple[Line, ...]
    """All rules that were compared, if some disagree."""
    gaps: tuple[Gap, ...] = ()
    """If the function is covered in part, the ranges that one side leaves out; :attr:`spot` is the first of these
    addresses, and :attr:`size` their number."""

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json``."""
        gaps = {"ranges": [gap.to_json() for gap in self.gaps]} if self.gaps else {}
        return {
            "address": self.spot.address,
            "section": self.spot.section,
            "size": self.size,
            "function": self.name,
            "reason": self.reason,
            **gaps,
        }


class Sizes(NamedTuple):
    """Sizes of a file's sections, in bytes."""

    sframe: int
    eh_frame: int
    eh_frame_hdr: int
    debug_frame: int
    code: int
    """Size of all sections with instructions."""
    not_described: int
    """Size of the code that neither SFrame nor DWARF CFI describes, including padding between functions."""


class Verdict(NamedTuple):
    """The result of comparing one file."""

    file: str
    functions: tuple[Function, ...]
    addresses_compared: int
    disagreements: tuple[Disagreement, ...]
    sizes: Sizes
    problems: tuple[str, ...] = ()
    """Errors in CFI records whose function is not known."""
    code: CodeReport | None = None
    """The result of the check against machine code; ``None``: there was no such check."""
    compared: bool = True
    """Whether SFrame and DWARF CFI were compared with each other."""
    loading: tuple[str, ...] = ()
    """Why the file cannot be loaded, independent of its unwind data."""
    orc: OrcReport | None = None
    """The result of comparing ORC; ``None``: it was not compared."""
    sframe_sections: tuple[tuple[str, int], ...] = ()
    """The SFrame sections of a linked file, each with its number of functions."""
    rewriter: str = ""
    """The name of the tool that rewrote the code after linking and left SFrame as it was; empty: none did."""
    known: int = 0
    """Number of findings that are left out here, because a baseline has them."""

    def count(self, *outcomes: Outcome) -> int:
        """Return the number of functions with an outcome."""
        found = [function.outcome for function in self.functions]
        return sum(map(found.count, outcomes))

    @property
    def both(self) -> int:
        """Number of functions that both describe."""
        return self.count(Outcome.AGREES, Outcome.DISAGREES)

    @property
    def sframe_only(self) -> int:
        """Number of functions that only SFrame describes."""
        return self.count(Outcome.SFRAME_ONLY)

    @property
    def dwarf_only(self) -> int:
        """Number of functions that only DWARF CFI describes, whether or not the reason is known."""
        return self.count(Outcome.DWARF_ONLY, Outcome.NOT_EXPRESSIBLE)

    @property
    def not_compared(self) -> int:
        """Number of functions with SFrame or CFI that cannot be decoded."""
        return self.count(Outcome.NOT_COMPARED)

    @property
    def in_part(self) -> int:
        """Number of functions of which one side leaves out a part."""
        return self.count(Outcome.IN_PART)

    @property
    def agrees(self) -> bool:
        """Whether everything that could be compared was compared and is the same, and the code shows nothing wrong."""
        found = self.disagreements or self.in_part or self.not_compared or self.problems or self.loading
        by_orc = self.orc is not None and self.orc.disagreements
        return not found and not by_orc and (self.code is None or self.code.is_clean)

    def to_json(self) -> dict[str, Any]:
        """Return the object of ``verify --json`` for the file."""
        code = {} if self.code is None else {"code": self.code.to_json()}
        comparison = self._comparison_json() if self.compared else {}
        orc = {} if self.orc is None else {"orc": self.orc.to_json()}
        known = {"known_by_baseline": self.known} if self.known else {}
        rewriter = {"rewritten": self.rewriter} if self.rewriter else {}
        return {"file": self.file, "loading": list(self.loading), **rewriter, **comparison, **orc, **code, **known}

    def _comparison_json(self) -> dict[str, Any]:
        return {
            "functions": {
                "both": self.both,
                "sframe_only": self.sframe_only,
                "dwarf_only": self.dwarf_only,
                "covered_in_part": self.in_part,
                "not_compared": self.not_compared,
            },
            "sframe_sections": [{"section": name, "functions": count} for name, count in self.sframe_sections],
            "addresses_compared": self.addresses_compared,
            "disagreements": [disagreement.to_json() for disagreement in self.disagreements],
            **{title.replace(" ", "_").lower(): self._json_of(outcomes) for title, outcomes in _LISTS},
            "problems": list(self.problems),
        }

    def _json_of(self, outcomes: tuple[Outcome, ...]) -> list[dict[str, Any]]:
        return [function.to_json() for function in self.functions if function.outcome in outcomes]

    def lines(self) -> Iterator[str]:
        """Yield the lines that ``verify`` prints for the file."""
        if self.compared:
            yield from self._comparison_lines()
        for problem in self.loading:
            yield f"  cannot be loaded: {problem}"
        if self.orc is not None:
            yield from self.orc.lines(self.file)
        if self.code is not None:
            yield from self.code.lines(self.file)
        if self.known:
            yield f"  known by the baseline: {counted(self.known, 'finding')}"

    def _comparison_lines(self) -> Iterator[str]:
        count = len(self.disagreements)
        in_part = f", {self.in_part} covered in part" if self.in_part else ""
        not_compared = f", {self.not_compared} not compared" if self.not_compared else ""
        rewritten = f"; the file was {self.rewriter}" if self.rewriter else ""
        yield (
            f"{self.file}: {counted(self.both, 'function')} in both, {self.sframe_only} in SFrame only,"
            f" {self.dwarf_only} in DWARF only{in_part}{not_compared};"
            f" {counted(self.addresses_compared, 'address')} compared,"
            f" {counted(count, 'disagreement') if count else 'no disagreements'}{rewritten}"
        )
        if len(self.sframe_sections) > 1:
            read = f"{SECTION_NAME}, which debuggers read"
            counts = [f"{count} in {read if name == SECTION_NAME else name}" for name, count in self.sframe_sections]
            yield f"  functions with SFrame: {'; '.join(counts)}"
        for difference in self.disagreements:
            place = difference.spot.with_name(difference.function)
            side = "" if difference.code is None else f"; {SIDES[difference.code]}"
            yield f"  {place}: {difference.what}: SFrame {difference.sframe}; DWARF {difference.dwarf}{side}"
        others = [function for function in self.functions if function.outcome is not Outcome.AGREES]
        for title, outcomes in _LISTS:
            for function in others:
                if function.outcome in outcomes:
                    yield _listed(title, function)
        for problem in self.problems:
            yield f"  CFI that cannot be read: {problem}"


_LISTS = (
    ("covered in part", (Outcome.IN_PART,)),
    ("SFrame only", (Outcome.SFRAME_ONLY,)),
    ("DWARF only", (Outcome.DWARF_ONLY, Outcome.NOT_EXPRESSIBLE)),
    ("not compared", (Outcome.NOT_COMPARED,)),
)
"""The functions that are listed one by one, in the order of the text."""


def _listed(title: str, function: Function) -> str:
    reason = f" ({function.reason})" if function.reason else ""
    return f"  {title}: {function.spot.with_name(function.name)}{reason}"
