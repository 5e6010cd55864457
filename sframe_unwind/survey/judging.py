"""Examines one file for a survey, and returns the rows of the database for it."""

from __future__ import annotations

import contextlib
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from io import BytesIO

from sframe_unwind import elf, internal_error
from sframe_unwind.address import RangeMap, merged, overlap
from sframe_unwind.code.judge.findings import DWARF, NONE, SFRAME
from sframe_unwind.convert.kinds import DWARF as FROM_DWARF
from sframe_unwind.convert.kinds import SFRAME as FROM_SFRAME
from sframe_unwind.convert.to_sframe import USUAL_ROWS, Conversion, Wanted, conversion
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.cfi import DEBUG_FRAME, EH_FRAME, EH_FRAME_HDR
from sframe_unwind.errors import EncodeError, FileError, FormatError, NoSFrameError, SFrameError
from sframe_unwind.lint import PROFILES, SectionReport, lint_elf, lint_section
from sframe_unwind.lint.catalogue import ABI_NOT_READ, VERSION_NOT_READ
from sframe_unwind.lint.sections import subject_of
from sframe_unwind.sframe.constants import NEWEST
from sframe_unwind.sframe.section import Section, highest_version
from sframe_unwind.survey.producers import producers_of
from sframe_unwind.survey.rows import (
    CONVERTED,
    FAILED,
    IN_FILE,
    MOST_FINDINGS,
    NOTHING,
    SURVEYED,
    FileRow,
    FindingRow,
    KindRow,
    ProfileRow,
    Surveyed,
    SurveyPlan,
)
from sframe_unwind.verify import Plan, verify_elf
from sframe_unwind.verify.reasons import why_left_out
from sframe_unwind.verify.verdict import Outcome, Verdict

_TYPES = {"ET_EXEC": "executable", "ET_DYN": "shared", "ET_REL": "object", "ET_CORE": "core"}
_PLACE = re.compile(r"^(?:at \+0x[0-9a-f]+: )|^.*?: (?=no function)")
"""Matches the part of a reason that concerns one function or one file; it is removed for counting."""
_TOO_MUCH = "more memory than a worker may have"
_KILOBYTE = 1 if sys.platform == "darwin" else 1024
"""Unit of ``ru_maxrss``, in bytes."""


def judge(data: bytes, plan: SurveyPlan) -> Surveyed:
    """Return the results for a file.

    Errors in the file are part of the result, and so is an error of this package.
    """
    started = time.process_time()
    try:
        with elf.parsed(BytesIO(data), "") as binary:
            found = _Judge(binary, plan).surveyed()
    except (SFrameError, MemoryError) as error:
        found = Surveyed(FileRow(FAILED, _why(error), bytes=len(data)))
    except Exception as error:  # noqa: BLE001  # one file must not cost what is found in the others
        internal_error.show_traceback(error)
        found = Surveyed(FileRow(FAILED, internal_error.describe(error), bytes=len(data)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KILOBYTE
    return found._replace(seconds=time.process_time() - started, peak=peak)


class _Judge:
    def __init__(self, binary: ElfBinary, plan: SurveyPlan) -> None:
        self._binary = binary
        self._plan = plan
        code = sum(end - start for start, end in binary.layout.code)
        self._row = FileRow(
            SURVEYED,
            machine=binary.arch.name,
            type=_TYPES.get(binary.type_name, binary.type_name),
            bytes=binary.size,
            code=code,
        )
        self._kinds: list[KindRow] = []
        self._findings: list[FindingRow] = []
        self._profiles: list[ProfileRow] = []

    def surveyed(self) -> Surveyed:
        self._row = self._row._replace(**producers_of(self._binary)._asdict())
        try:
            self._examine()
        # Results up to here are kept: lint reports malformed sections.
        except (SFrameError, MemoryError) as error:
            self._row = self._row._replace(state=FAILED, why=_why(error))
        self._row = self._row._replace(findings=len(self._findings))
        return Surveyed(self._row, tuple(self._kinds), tuple(_first_of_each(self._findings)), tuple(self._profiles))

    def _examine(self) -> None:
        with contextlib.suppress(NoSFrameError):
            for report in lint_elf(self._binary, list(PROFILES.values())).sections:
                self._lint(report)
        sections = self._sframe()
        cfi = self._cfi()
        if sections is None and not cfi:
            self._row = self._row._replace(state=NOTHING)
            return
        if sections is None and self._plan.convert:
            sections = self._converted()
        if self._plan.compact and sections is not None:
            self._compact()
        self._verify(sections)
        self._extents(sections, cfi)

    def _sframe(self) -> list[Section] | None:
        """Return the file's own SFrame.

        :raises FormatError: it is malformed.
        """
        try:
            sections = self._binary.sframe
        except NoSFrameError:
            return None
        version = highest_version(sections)
        size = sum(section.size for section in sections)
        self._row = self._row._replace(origin=IN_FILE, version=version, sframe=size)
        return sections

    def _cfi(self) -> list[tuple[int, int]]:
        """Return the extents of the functions with DWARF CFI; record those that GNU as would leave out."""
        arch, cfi = self._binary.arch, self._binary.cfi
        left_out: list[tuple[str, int]] = []
        for function in cfi.all_functions():
            if why := why_left_out(function, arch, NEWEST):
                left_out.append((why, function.end - function.start))
        self._count("GNU as", "left out", left_out)
        return cfi.ranges()

    def _converted(self) -> list[Section] | None:
        """Return the SFrame that ``convert`` would make, proved and linted."""
        try:
            made = conversion(self._binary, Wanted(source=FROM_DWARF))
        except (EncodeError, FileError) as error:
            self._row = self._row._replace(why=f"not converted: {_PLACE.sub('', str(error))}")
            return None
        section = Section(made.section, made.address)
        made.proved([section])
        self._row = self._row._replace(origin=CONVERTED, version=NEWEST, sframe=section.size)
        self._lint(lint_section(subject_of(self._binary, made.section, made.address), list(PROFILES.values())))
        self._losses(made)
        return [section]

    def _compact(self) -> None:
        """Measure the section that ``convert --compact`` would write for a reader that lets functions share rows."""
        source = FROM_DWARF if self._row.origin == CONVERTED else FROM_SFRAME
        try:
            made = conversion(self._binary, Wanted(source=source, consumers=("spec",), max_rows=USUAL_ROWS))
        except (EncodeError, FileError):
            return
        made.proved([Section(made.section, made.address)])
        if made.compact is not None:
            plain, shared, compact = made.compact.sizes
            self._row = self._row._replace(sframe_plain=plain, sframe_shared=shared, sframe_compact=compact)

    def _losses(self, made: Conversion) -> None:
        self._count("convert", "left out", ((loss.reason, loss.end - loss.start) for loss in made.losses))

    def _verify(self, sections: list[Section] | None) -> None:
        """Compare the tables with each other and with the code."""
        code = self._plan.code
        if code and self._plan.most_code and self._row.code > self._plan.most_code:
            code = False
            self._row = self._row._replace(not_interpreted=f"more than {self._plan.most_code:,} bytes of code")
        if sections is None and not code:
            return
        try:
            verdict = verify_elf(self._binary, Plan(dwarf=sections is not None, code=code), sections)
        except FileError as error:
            self._row = self._row._replace(why=str(error))
            return
        self._tables(verdict)
        self._code(verdict)

    def _tables(self, verdict: Verdict) -> None:
        sizes = verdict.sizes
        self._row = self._row._replace(addresses=verdict.addresses_compared, disagreements=len(verdict.disagreements))
        if not verdict.compared:
            return
        for outcome in Outcome:
            found = [function for function in verdict.functions if function.outcome is outcome]
            # If one side leaves a part out, the reason has the part's addresses.
            with_reason = outcome in (Outcome.NOT_EXPRESSIBLE, Outcome.DWARF_ONLY, Outcome.NOT_COMPARED)
            told = ((one.reason if with_reason else "", one.size) for one in found)
            self._count("tables", outcome.value, told)
        if sizes.not_described:
            self._kinds.append(KindRow("tables", "not described", "", 0, sizes.not_described))
        for one in verdict.disagreements:
            side = one.code.value if one.code is not None else ""
            level = "error" if side in ("sframe", "dwarf", "neither") else "warning"
            wrong = {"sframe": DWARF, "dwarf": SFRAME}.get(side, "")
            self._findings.append(
                FindingRow(
                    judge="tables",
                    kind=one.what,
                    level=level,
                    section=one.spot.section,
                    address=one.spot.address,
                    function=one.function,
                    table=wrong,
                    says=one.sframe,
                    expected=one.dwarf,
                )
            )
        for problem in verdict.problems:
            self._findings.append(
                FindingRow(
                    judge="tables",
                    kind="CFI",
                    level="error",
                    section="",
                    address=0,
                    function="",
                    table=DWARF,
                    says=problem,
                    expected="",
                )
            )

    def _code(self, verdict: Verdict) -> None:
        code = verdict.code
        if code is None:
            return
        sframe, dwarf = (code.counts.get(table, NONE) for table in (SFRAME, DWARF))
        self._row = self._row._replace(
            interpreted=code.functions,
            instructions=code.instructions,
            sframe_proved=sframe.proved,
            sframe_wrong=sframe.wrong,
            sframe_unknown=sframe.unknown,
            dwarf_proved=dwarf.proved,
            dwarf_wrong=dwarf.wrong,
            dwarf_unknown=dwarf.unknown,
        )
        judged = Counter[str]()
        sizes = Counter[str]()
        for function in verdict.functions:
            if (found := code.judged.get(function.spot)) is not None:
                judged[found.name.lower()] += 1
                sizes[found.name.lower()] += function.size
        self._kinds += (KindRow("code", kind, "", judged[kind], sizes[kind]) for kind in sorted(judged))
        for one in code.findings:
            self._findings.append(
                FindingRow(
                    judge="code",
                    kind=one.what,
                    level="warning" if one.assumes else "error",
                    section=one.spot.section,
                    address=one.spot.address,
                    function=one.function,
                    table=one.table,
                    says=one.rule,
                    expected=one.code,
                )
            )

    def _lint(self, report: SectionReport) -> None:
        for one in report.judgements:
            rules = {refusal.finding.rule for refusal in one.refusals} | {r for loss in one.losses for r in loss.rules}
            why = ", ".join(sorted(map(str, rules)))
            self._profiles.append(ProfileRow(one.profile, one.outcome.value, why, len(one.losses), one.lost))
        for shown in report.findings:
            found = shown.finding
            if found.rule in (VERSION_NOT_READ, ABI_NOT_READ):  # the row of the consumer has this
                continue
            self._findings.append(
                FindingRow(
                    judge="lint",
                    kind=str(found.rule),
                    level=shown.level.value,
                    section=report.section,
                    address=found.offset or 0,
                    function=found.where,
                    table=SFRAME,
                    says=found.message,
                    expected="",
                )
            )

    def _extents(self, sections: list[Section] | None, cfi: list[tuple[int, int]]) -> None:
        """Count the described functions, and the bytes of the unwind data."""
        sframe: list[tuple[int, int]] = []
        for section in sections or ():
            try:
                sframe += [(one.start, one.end) for one in section.functions() if one.end > one.start]
            except FormatError:
                break  # verify and lint report it
        code = merged(self._binary.layout.code)
        # Linkers describe the PLT by one FDE of CFI and two of SFrame: an FDE that begins inside a function is not
        # another function.
        known = RangeMap((start, end, None) for start, end in cfi)
        alone = {(start, end) for start, end in sframe if known.find(start) is None}
        self._row = self._row._replace(
            eh_frame=self._binary.size_of(EH_FRAME),
            eh_frame_hdr=self._binary.size_of(EH_FRAME_HDR),
            debug_frame=self._binary.size_of(DEBUG_FRAME),
            functions=len(set(cfi)) + len(alone),
            covered=overlap(merged(sframe), code),
            in_cfi=overlap(merged(cfi), code),
        )

    def _count(self, judge: str, kind: str, functions: Iterable[tuple[str, int]]) -> None:
        """Add the number of functions for each reason, given reasons and sizes."""
        number, size = Counter[str](), Counter[str]()
        for why, length in functions:
            why = _PLACE.sub("", why)
            number[why] += 1
            size[why] += length
        self._kinds += (KindRow(judge, kind, why, number[why], size[why]) for why in sorted(number))


def _why(error: SFrameError | MemoryError) -> str:
    """Return why a file cannot be surveyed."""
    return _TOO_MUCH if isinstance(error, MemoryError) else str(error).removeprefix(": ")


def _first_of_each(findings: Iterable[FindingRow]) -> Iterator[FindingRow]:
    seen = Counter[tuple[str, str, str]]()
    for finding in findings:
        key = finding[:3]
        seen[key] += 1
        if seen[key] <= MOST_FINDINGS:
            yield finding
