"""Checks the rows of frames against the machine code, if the extra ``code`` is installed in the debugger's Python.

The extra is imported when the first row is judged, so that it does not slow down the start of the debugger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Callable

from sframe_unwind.debugger.processor_time import ProcessorTime
from sframe_unwind.errors import MemoryReadError, MissingExtraError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind.precedence import JudgeRule, Verdict
from sframe_unwind.unwind_rule import UnwindRule

if TYPE_CHECKING:
    from sframe_unwind.code.judge.one_address import AddressVerdict, FunctionCode, WrongValue
    from sframe_unwind.report.compare import ByCode, JudgeRow
    from sframe_unwind.unwind.code_match import CodeMatch
    from sframe_unwind.unwind.run_time_match import RunTimeMatch

UNKNOWN = "unknown"
_MAX_SIZE = 1 << 16
"""Maximum size in bytes of a function that is interpreted while a user waits; this size takes about a second."""
_SECONDS = 3.0
"""Processor time for all frames of one command; the remaining frames are not judged."""
_MAX_FUNCTIONS = 256
"""Maximum number of functions that are kept between commands: a user steps through few functions."""


class ProcessCode(NamedTuple):
    """The code of one process."""

    modules: Modules
    read: ReadMemory
    name_of: Callable[[int], str]
    """Returns the name of the symbol that begins at an address, in the linker's spelling; empty: none does."""


class _Range(NamedTuple):
    """The code that a row belongs to."""

    start: int
    size: int
    stub_size: int
    """Size of each stub in a procedure linkage table; 0: the range is a function."""


class CodeJudge:
    """Judges rows for one command.

    :param seconds: processor time; when it is used up, no further row is judged.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._time = ProcessorTime(seconds)

    def rows_of(self, process: ProcessCode) -> JudgeRow:
        """Return the function that judges the rows of a process, for ``sframe compare``."""

        def judge(pc: int) -> ByCode | None:
            from sframe_unwind.code.decode.lifting import check_installed

            if self._time.is_used_up:
                return None
            try:
                check_installed()  # imports it the first time, which would use up a third of the time
                with self._time.used():
                    return _judged(process, pc, of_row=False)
            except MissingExtraError:
                return None

        return judge


_said: set[str] = set()
"""Message about the missing extra, shown once."""


def code_lines(process: ProcessCode, pc: int) -> Sequence[str]:
    """Return the lines of ``sframe explain`` about the row for an address, usually one."""
    try:
        found = _judged(process, pc, of_row=True)
    except MissingExtraError as error:
        line = f"code:  not checked: {error}"
        if line in _said:
            return []
        _said.add(line)
        return [line]
    return [] if found is None else [f"code:  {found}"]


def _judged(process: ProcessCode, pc: int, of_row: bool) -> ByCode | None:
    """Return the verdict of the code on the rule for an address; ``None``: there is no rule, or it is the code's.

    :param of_row: judge the rule of the row even if it is not used because a PLT stub refutes it.
    :raises MissingExtraError: the package that decodes the code is not installed.
    """
    from sframe_unwind.report.compare import WRONG, ByCode  # for commands, and not at each stop
    from sframe_unwind.unwind.code_match import CodeMatch

    found = process.modules.results[pc]
    if not isinstance(found, Found) or isinstance(found.match, CodeMatch):
        return None
    function = function_at(process, found, pc)
    if isinstance(function, str):
        return ByCode(UNKNOWN, function)
    verdict = function.verdict(pc, found.match.rule if of_row else found.rule)
    if verdict.wrong:
        return ByCode(WRONG, _sentence(process, function, pc, verdict, isinstance(found.match, Match)))
    why = verdict.why if function.is_complete else "it takes too long to follow all of the function"
    return ByCode(str(verdict), why)


def rule_judge(process: ProcessCode, max_size: int = _MAX_SIZE, most: int | None = None) -> JudgeRule:
    """Return the function that judges rules by the code of a process, for mode ``auto``.

    Nothing is proved or refuted where the extra is not installed, or the function is not interpreted as a whole.

    :param max_size: maximum size of a function that is interpreted, in bytes.
    :param most: maximum number of addresses at which rules are judged; ``None``: there is none.
    """
    asked: set[int] = set()

    def judge(found: Found, pc: int, rule: UnwindRule) -> Verdict:
        if most is not None and pc not in asked and len(asked) >= most:
            return Verdict.UNKNOWN
        asked.add(pc)
        try:
            function = function_at(process, found, pc, max_size=max_size)
        except MissingExtraError:
            return Verdict.UNKNOWN
        if isinstance(function, str) or not function.is_complete:
            return Verdict.UNKNOWN
        verdict = function.verdict(pc, rule)
        if verdict.wrong:
            return Verdict.REFUTED
        return Verdict.PROVED if verdict.is_proved else Verdict.UNKNOWN

    return judge


def function_at(
    process: ProcessCode, found: Found, pc: int, tracked: tuple[int, ...] = (), max_size: int = _MAX_SIZE
) -> FunctionCode | str:
    """Return the interpreted function of a row; a text: why it is not interpreted.

    :param found: the row for the address ``pc``.
    :param tracked: the callee-saved registers to follow as well.
    :param max_size: maximum size of the function, in bytes.
    :raises MissingExtraError: the package that decodes the code is not installed.
    """
    from sframe_unwind.code.decode.lifting import check_installed

    check_installed()
    if found.rule.cfa is None:
        return "the code does not show that a stack ends"
    if found.signal:
        return "the kernel enters the code, with a frame of its own"
    place = _range(found.match, pc)
    if place.size > max_size:
        return f"the function has {place.size:,} bytes, which takes too long"
    try:
        code = process.read(place.start, place.size)
    except MemoryReadError as error:
        return str(error)
    name = process.name_of(place.start)
    function = _interpreted(process, place, code, name, tracked)
    if not name and not place.stub_size and not _is_entered(process, function, place.start):
        return "where it begins, the row is not that of a function: it may be a part of another one"
    return function


def _range(match: Match | RunTimeMatch | CodeMatch, pc: int) -> _Range:
    if not isinstance(match, Match):
        return _Range(match.function.start, match.function.end - match.function.start, 0)
    function, fde = match.function, match.function.fde
    if fde.pc_type is not PcType.MASK:
        return _Range(function.start, function.end - function.start, 0)
    stub = function.start + (pc - function.start) // fde.repetition_size * fde.repetition_size
    return _Range(stub, min(fde.repetition_size, function.end - stub), fde.repetition_size)


def _is_entered(process: ProcessCode, function: FunctionCode, start: int) -> bool:
    """Return whether code without a name is entered as functions are.

    Parts of functions that compilers put elsewhere, and the header of a procedure linkage table, are not entered that
    way, although a row begins at their first instruction.
    """
    found = process.modules.results[start]
    return isinstance(found, Found) and function.is_entered_with(found.rule)


_known: dict[tuple[str, _Range, bytes, str, tuple[int, ...]], FunctionCode] = {}


def _interpreted(process: ProcessCode, place: _Range, code: bytes, name: str, tracked: tuple[int, ...]) -> FunctionCode:
    from sframe_unwind.code.judge.one_address import FunctionCode

    arch = process.modules.arch
    key = arch.name, place, code, name, tracked
    found = _known.pop(key, None)
    if found is None:
        found = FunctionCode(
            arch=arch,
            start=place.start,
            code=code,
            name=name,
            read=process.read,
            name_of=process.name_of,
            stub_size=place.stub_size,
            tracked=tracked,
        )
    _known[key] = found  # last, so that the least recently used one is first
    if len(_known) > _MAX_FUNCTIONS:
        del _known[next(iter(_known))]
    return found


def _sentence(process: ProcessCode, function: FunctionCode, pc: int, verdict: AddressVerdict, is_sframe: bool) -> str:
    """Return the error in words, like ``sframe-unwind verify --against code``."""
    rule: UnwindRule | None = process.modules.cfi_rule(pc)
    others: tuple[WrongValue, ...] = () if rule is None else function.verdict(pc, rule).wrong
    parts = []
    for wrong in verdict.wrong:
        both = any(other.what == wrong.what and other.rule == wrong.rule for other in others)
        row = "SFrame" if is_sframe else "the row"
        who = f"{row} and DWARF say" if both else f"{row} says"
        parts.append(f"{wrong.what}: the code has {wrong.code}; {who} {wrong.rule}")
    return "; ".join(parts)
