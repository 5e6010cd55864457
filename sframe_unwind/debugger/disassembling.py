"""The listing of ``sframe disassemble``: the function around an address with the rules of SFrame, CFI and the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Callable

from sframe_unwind.address import Range
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.agreement import differences
from sframe_unwind.debugger.code_judge import ProcessCode, function_at
from sframe_unwind.debugger.processor_time import ProcessorTime
from sframe_unwind.errors import MissingExtraError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report import frame_picture
from sframe_unwind.report.explain import FrameContext, values
from sframe_unwind.report.listing import (
    CODE,
    DIFFERS,
    DWARF,
    PLAIN,
    SFRAME,
    WRONG,
    Extra,
    Listing,
    Note,
    Refuted,
    Row,
    SourceLine,
)
from sframe_unwind.report.listing_text import COLOURED, PLAIN_STYLE, Format, to_text
from sframe_unwind.report.rule_cells import RuleCells, difference, rule_cells
from sframe_unwind.report.terminal import printable
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.code_match import CodeMatch
from sframe_unwind.unwind.modules import Found, NoData
from sframe_unwind.unwind_rule import UnwindRule

_MAX_SIZE = 1 << 20
"""Maximum size in bytes of a function that is shown: a terminal shows no more."""
_SECONDS = 3.0
"""Processor time for the verdicts of the code; without them, the column is left out from there on."""


class Instruction(NamedTuple):
    """An instruction as the debugger writes it."""

    address: int
    size: int
    text: str
    line: SourceLine | None = None
    """The line of source to which it belongs; ``None``: not known, or not wanted."""


class View(NamedTuple):
    """What the debugger shows."""

    name: str
    """The function; may be empty."""
    disassemble: Callable[[int, int], Sequence[Instruction]]
    """``(start, end)``: returns the instructions of a range of addresses."""
    marked: int | None
    """The pc, which gets an arrow; ``None``: the function is not that of a frame."""
    frame: FrameContext | None
    """The frame with this lookup address; ``None``: there is none."""


def lines(process: ProcessCode, pc: int, view: View, coloured: bool) -> list[str]:
    """Return the lines of the command.

    :param pc: lookup address; see :func:`sframe_unwind.address.lookup_address`.
    :param coloured: write escape sequences for colours.
    :raises SFrameError: neither SFrame nor CFI describes the address, or its code cannot be read.
    """
    arch = process.modules.arch
    start, end = _extent(process, pc)
    rows = _Rows(process, view, pc)
    listing = Listing(
        name=view.name,
        section="",
        start=start,
        size=end - start,
        relative=False,
        columns=rows.columns,
        data=tuple(rows.data),
        parts=list(rows.of(view.disassemble(start, end))),
    )
    marked = frozenset() if view.marked is None else frozenset((view.marked,))
    found = list(to_text(listing, Format(COLOURED if coloured else PLAIN_STYLE, marked=marked)))
    for picture in frame_picture.pictures(_placed(process, pc), arch) if view.frame is not None else ():
        found += ["", frame_picture.heading("the frame", picture, listing.refuted(pc)), *frame_picture.lines(picture)]
    return found


def _extent(process: ProcessCode, pc: int) -> Range:
    """Return the range of the function around an address, by SFrame, or else by CFI."""
    result = process.modules.results[pc]
    start, end = 0, 0
    if isinstance(result, Found):
        function = result.match.function
        start, end = function.start, function.end
        if isinstance(result.match, Match) and result.match.function.fde.pc_type is PcType.MASK:
            size = result.match.function.fde.repetition_size
            start += (pc - start) // size * size
            end = min(start + size, end)
    elif (module := process.modules.find(pc)) is not None:
        extents = (extent for cfi in module.debug_cfi if cfi.covers(pc) for extent in cfi.extents())
        start, end = next((extent for extent in extents if extent[0] <= pc < extent[1]), (start, end))
        if start == end and module.cfi is not None and (described := module.cfi.function_at(pc)) is not None:
            start, end = described.start, described.end
    if not start <= pc < end:
        reason = result.reason if isinstance(result, NoData) else "SFrame is not usable"
        raise SFrameError(f"{pc:#x}: nothing tells where its function begins: {reason}; no CFI")
    if end - start > _MAX_SIZE:
        raise SFrameError(f"{pc:#x}: the function has {end - start:,} bytes, at most {_MAX_SIZE:,} are shown")
    return start, end


def _rules(process: ProcessCode, at: int) -> tuple[UnwindRule | None, UnwindRule | None]:
    """Return the rules of SFrame and of CFI for an address."""
    result = process.modules.results[at]
    has_row = isinstance(result, Found) and not isinstance(result.match, CodeMatch)
    return result.match.rule if isinstance(result, Found) and has_row else None, process.modules.cfi_rule(at)


def _rule_of_code(process: ProcessCode, at: int) -> UnwindRule | None:
    """Return the rule by which the code alone unwinds at an address; ``None``: there is a table, or no rule."""
    result = process.modules.results[at]
    return result.rule if isinstance(result, Found) and isinstance(result.match, CodeMatch) else None


def _placed(process: ProcessCode, pc: int) -> list[frame_picture.PlacedRule]:
    sframe, dwarf = _rules(process, pc)
    by_code = _rule_of_code(process, pc)
    if by_code is not None:
        return [frame_picture.PlacedRule(CODE, by_code)]
    found = [] if sframe is None else [frame_picture.PlacedRule(SFRAME, sframe)]
    return found if dwarf is None else [*found, frame_picture.PlacedRule(DWARF, dwarf, dwarf.others or ())]


class _Rows:
    """Makes the rows of the listing.

    :param pc: lookup address, of the instruction beside which the values are shown.
    """

    def __init__(self, process: ProcessCode, view: View, pc: int) -> None:
        self._process = process
        self._view = view
        self._pc = pc
        self._arch: Arch = process.modules.arch
        self._time = ProcessorTime(_SECONDS)
        self._has_code = self._installed()
        self.columns = (SFRAME, DWARF, *((CODE,) if self._has_code else ()))
        result = process.modules.results[pc]
        is_row = isinstance(result, Found) and _rule_of_code(process, pc) is None
        sframe = f"in {result.module.name}" if isinstance(result, Found) and is_row else "no row"
        self.data = [sframe, "in the same file" if process.modules.has_cfi(pc) else "no row"]
        if self._has_code:
            self.data.append("interpreted, without what calls it")
        self._before: tuple[UnwindRule | None, ...] = (None, None)
        self._cells: tuple[RuleCells | None, ...] = (None,) * len(self.columns)
        self._line: SourceLine | None = None
        self._wrong: tuple[Refuted, ...] = ()

    @staticmethod
    def _installed() -> bool:
        try:
            from sframe_unwind.code.decode.lifting import check_installed

            check_installed()
        except MissingExtraError:
            return False
        return True

    def of(self, instructions: Sequence[Instruction]) -> Iterator[Row]:
        """Yield the rows of the instructions."""
        for instruction in instructions:
            yield self._row(instruction)

    def _row(self, instruction: Instruction) -> Row:
        at = instruction.address
        sframe, dwarf = rules = _rules(self._process, at)
        begins = sum(1 << bit for bit, pair in enumerate(zip(rules, self._before)) if pair[0] != pair[1])
        differs = differences(sframe, dwarf, self._arch) if sframe is not None and dwarf is not None else ()
        notes = []
        if begins:
            self._before = rules
            cells = (None if rule is None else rule_cells(rule, self._arch) for rule in rules)
            self._cells = (*cells, *self._cells[2:])
            if sframe is not None and dwarf is not None:
                notes = [Note(DIFFERS, difference(what, sframe, dwarf, self._arch)) for what in differs]
        if self._has_code:
            with self._time.used():
                begins |= self._judged(at, sframe, dwarf, notes)
        source = () if instruction.line is None or instruction.line == self._line else (instruction.line,)
        self._line = instruction.line
        shown = self._values(at, instruction.size, sframe or dwarf or _rule_of_code(self._process, at))
        extra = PLAIN
        if notes or source or shown or differs or self._wrong:
            marked = tuple(dict.fromkeys((*differs, *(one.what for one in self._wrong))))
            extra = Extra(source=source, notes=tuple(notes), differs=marked, refuted=self._wrong, values=shown)
        raw = b"\0" * instruction.size  # it is not shown: the debugger's text is
        return Row(address=at, raw=raw, text=printable(instruction.text), rules=self._cells, begins=begins, extra=extra)

    def _values(self, at: int, size: int, rule: UnwindRule | None) -> tuple[str, ...]:
        """Return the values of the frame, at the instruction that contains the lookup address."""
        frame = self._view.frame
        if frame is None or rule is None or not at <= self._pc < at + size:
            return ()
        return tuple(values(rule, self._arch, frame))

    def _judged(self, at: int, sframe: UnwindRule | None, dwarf: UnwindRule | None, notes: list[Note]) -> int:
        """Take the rule of the code at an instruction; return the bit of its column if the rule changes."""
        from sframe_unwind.code.judge.proved_cells import proved_cells

        found = self._process.modules.results[at]
        if not isinstance(found, Found) or self._time.is_used_up:
            return 0
        if isinstance(found.match, CodeMatch):
            return self._take_code(rule_cells(found.rule, self._arch))
        function = function_at(self._process, found, at)
        if isinstance(function, str):
            return 0
        judged = []
        wrong: list[Refuted] = []
        texts: dict[tuple[str, str], list[str]] = {}
        for title, rule in ((SFRAME, sframe), (DWARF, dwarf)):
            if rule is None or rule.cfa is None:
                continue
            verdict = function.verdict(at, rule._replace(others=None))
            judged.append((rule_cells(rule, self._arch), verdict.judgements))
            for value in verdict.wrong:
                wrong.append(Refuted(title, value.what))
                texts.setdefault((value.code, value.rule), []).append(title)
        if tuple(wrong) != self._wrong:
            for (code, rule_text), titles in texts.items():
                says = "say" if len(titles) > 1 else "says"
                notes.append(Note(WRONG, f"by the code, {code}; {' and '.join(titles)} {says} {rule_text}"))
        self._wrong = tuple(wrong)
        return self._take_code(proved_cells(judged))

    def _take_code(self, cells: RuleCells | None) -> int:
        """Take the cells of the code's rule; return the bit of its column if they change."""
        if cells is None or cells == self._cells[-1]:
            return 0
        self._cells = (*self._cells[:-1], cells)
        return 4
