"""Checks a file's SFrame, DWARF CFI and ORC against its machine code."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain

from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.image.elf_image import exception_tables, image_of
from sframe_unwind.code.image.ranges import CodeRanges
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.judge.checking import Checker
from sframe_unwind.code.judge.findings import DWARF, ORC, SFRAME, CodeVerdict, Verdicts
from sframe_unwind.code.judge.judgement import Judgement
from sframe_unwind.code.judge.tables import RuleTable
from sframe_unwind.code.judge.whole_file import check_functions
from sframe_unwind.elf import SECTION_NAME, ElfBinary
from sframe_unwind.elf.cfi import EH_FRAME
from sframe_unwind.elf.section_addresses import FileAddress
from sframe_unwind.errors import FileError
from sframe_unwind.sframe.section import Section
from sframe_unwind.verify.code_report import CodeFinding, CodeReport, report
from sframe_unwind.verify.code_tables import CfiTable, OrcRules, SFrameTable, function_ranges
from sframe_unwind.verify.needed import chosen, needed
from sframe_unwind.verify.plan import Plan
from sframe_unwind.verify.terms import Side
from sframe_unwind.verify.verdict import Disagreement, Function, Line, Outcome, Verdict, Words

_NOTHING = Words("", "", "")


def check_elf(
    binary: ElfBinary,
    sections: list[Section] | None,
    plan: Plan = Plan(),  # noqa: B008  # it cannot change
    wanted: frozenset[int] = frozenset(),
) -> CodeVerdict:
    """Check the tables of an open ELF file against its code.

    :param sections: its SFrame; empty: it has none.
    :param wanted: addresses for which the result must have verdicts.
    :raises FileError: the file has no table.
    :raises SFrameError: the package that decodes the code is not installed.
    """
    sframe = SFrameTable(sections) if sections else None
    checker = checker_of(binary, sframe, plan, wanted)
    if plan.only is None:
        found = check_functions(checker, plan.jobs, plan.progress)
    else:
        found = check_functions(
            checker, plan.jobs, only=needed(checker, binary, plan.only), reported=chosen(checker, plan.only)
        )
    entries = len(sframe.ranges()) if sframe is not None and sframe.is_divided else None
    return found._replace(sframe_entries=entries)


def checker_of(binary: ElfBinary, sframe: SFrameTable | None, plan: Plan, wanted: frozenset[int]) -> Checker:
    """Return the checker of a file's functions, for all of its tables.

    :param sframe: its SFrame; ``None``: it has none.
    :param wanted: addresses for which the results must have verdicts.
    :raises FileError: the file has no table.
    :raises SFrameError: the package that decodes the code is not installed.
    """
    arch, cfi = binary.arch, binary.cfi
    machine = MACHINES[arch.name]
    lifter = Lifter(machine)
    tables: dict[str, RuleTable] = {}
    if sframe is not None:
        tables[SFRAME] = sframe
    if cfi.ranges():
        tables[DWARF] = CfiTable(cfi, arch)
    orc = OrcRules(binary.orc, binary.symbols) if binary.orc is not None else None
    if orc is not None:
        tables[ORC] = orc
    if not tables:
        absent = binary.without_contents(SECTION_NAME, EH_FRAME)
        raise FileError(absent or "neither SFrame nor DWARF CFI to check against the code")
    image = image_of(binary, machine)
    landing_pads = exception_tables(binary, image)
    functions = function_ranges(sframe, cfi.ranges(), binary.symbols.extents())
    described = chain(functions, orc.ranges() if orc is not None else ())
    ranges = CodeRanges(entry for entry in described if image.is_code(entry[0]))
    interpreter = Interpreter(image, machine, lifter, ranges, landing_pads)
    return Checker(interpreter, tables, wanted, plan.why_unknown)


def judged(
    binary: ElfBinary, sections: list[Section] | None, plan: Plan, verdict: Verdict, disagreeing: Sequence[int]
) -> Verdict:
    """Add the verdicts of the check against machine code to the result of comparing the tables.

    :param disagreeing: the address of each disagreement of the verdict.
    """
    orc = verdict.orc.disagreements if verdict.orc is not None else ()
    found = check_elf(binary, sections, plan, frozenset((*disagreeing, *(one.pc for one in orc))))
    listing = plan.listing or verdict.compared
    code = report(found, binary, plan.why_unknown, listing)
    disagreements = tuple(
        disagreement._replace(code=side_of(pc, disagreement.what, found.wanted, (SFRAME, DWARF)))
        for pc, disagreement in zip(disagreeing, verdict.disagreements)
    )
    if verdict.orc is not None:
        tables = verdict.orc.table, ORC
        judged_orc = tuple(one._replace(code=side_of(one.pc, one.what, found.wanted, tables)) for one in orc)
        verdict = verdict._replace(orc=verdict.orc._replace(disagreements=judged_orc))
    if not listing:
        return verdict._replace(disagreements=disagreements, code=code)
    functions = verdict.functions if verdict.compared else _functions(found, binary)
    with_lines = tuple(_with_code(functions, disagreements, code))
    return verdict._replace(disagreements=disagreements, functions=with_lines, code=code)


def side_of(pc: int, what: str, verdicts: Mapping[str, Verdicts], tables: tuple[str, str]) -> Side:
    """Return with which of two tables the code agrees."""
    one, other = (
        getattr(verdicts[table][pc], what) if pc in verdicts.get(table, ()) else Judgement.UNKNOWN for table in tables
    )
    if one is Judgement.PROVED:
        return Side.BOTH if other is Judgement.PROVED else Side(tables[0])
    if other is Judgement.PROVED:
        return Side(tables[1])
    return Side.NEITHER if one is Judgement.WRONG and other is Judgement.WRONG else Side.UNKNOWN


def _functions(found: CodeVerdict, binary: ElfBinary) -> tuple[Function, ...]:
    """Return the functions of a file whose tables were not compared with each other."""
    return tuple(
        Function(
            spot=binary.layout.spot(function.start),
            size=function.end - function.start,
            name=binary.function_name(function.start),
            outcome=Outcome.DESCRIBED,
            reason="",
            lines=(),
        )
        for function in found.functions
    )


def _with_code(
    functions: Sequence[Function], disagreements: Sequence[Disagreement], code: CodeReport
) -> Sequence[Function]:
    """Return the functions with the verdicts of the code on their lines, and with lines for the code's own findings."""
    findings: dict[tuple[FileAddress, str], list[CodeFinding]] = {}
    for finding in filter(lambda finding: not finding.assumes, code.findings):
        findings.setdefault((finding.spot, finding.what), []).append(finding)
    sides = {(one.spot, one.what): one for one in disagreements}
    places = sorted(findings, key=lambda key: (key[0].section, key[0].address))
    starts = [(spot.section, spot.address) for spot, _ in places]
    has_orc = ORC in code.counts
    result = []
    for function in functions:
        lines = [_judged_line(line, sides, findings) for line in function.lines]
        known = {line.spot for line in lines}
        if code.judged.get(function.spot) is Judgement.WRONG:
            first = bisect_left(starts, (function.spot.section, function.spot.address))
            last = bisect_left(starts, (function.spot.section, function.spot.address + function.size))
            lines += [_found_line(*place, findings[place]) for place in places[first:last] if place[0] not in known]
        if has_orc:
            lines = [line if line.orc is not None else line._replace(orc=_NOTHING) for line in lines]
        result.append(function._replace(lines=tuple(sorted(lines, key=lambda line: line.spot.address))))
    return result


def _judged_line(
    line: Line,
    sides: Mapping[tuple[FileAddress, str], Disagreement],
    findings: Mapping[tuple[FileAddress, str], list[CodeFinding]],
) -> Line:
    words = {}
    for what in line.differs:
        disagreement = sides.get((line.spot, what))
        if disagreement is None:
            continue
        found = findings.get((line.spot, what))
        if disagreement.code in (Side.DWARF, Side.BOTH):
            words[what] = disagreement.dwarf
        elif disagreement.code is Side.SFRAME:
            words[what] = disagreement.sframe
        else:
            words[what] = found[0].code if found else "unknown"
    by_orc = {
        what: one.rule for what in line.differs for one in findings.get((line.spot, what), ()) if one.table == ORC
    }
    return line._replace(code=_NOTHING._replace(**words), orc=_NOTHING._replace(**by_orc) if by_orc else None)


def _found_line(spot: FileAddress, what: str, found: Sequence[CodeFinding]) -> Line:
    said = {finding.table: _NOTHING._replace(**{what: finding.rule}) for finding in found}
    code = _NOTHING._replace(**{what: found[0].code})
    return Line(
        spot=spot,
        sframe=said.get(SFRAME, _NOTHING),
        dwarf=said.get(DWARF, _NOTHING),
        differs=(what,),
        code=code,
        orc=said.get(ORC),
    )
