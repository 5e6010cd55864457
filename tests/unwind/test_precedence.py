"""SFrame or CFI for an address: each case of the policy, and real files, where pyelftools gives the CFI's rule."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Callable

import pytest
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import BY_NAME
from sframe_unwind.cfi.section import CfiMatch
from sframe_unwind.debugger.code_judge import ProcessCode, rule_judge
from sframe_unwind.errors import FormatError, SFrameError, UnsupportedExpressionError
from sframe_unwind.report.status import to_text
from sframe_unwind.sframe.constants import AbiNumber
from sframe_unwind.unwind.modules import Found, Module, Modules
from sframe_unwind.unwind.passed_over import passed_over
from sframe_unwind.unwind.precedence import Decision, JudgeRule, Precedence, Reason, Source, Verdict
from sframe_unwind.unwind_rule import COMPUTED, OUTERMOST, UnwindRule
from tests.debugger.module_file import File
from tests.elf.objects import run, tools_for
from tests.missing import package_needed
from tests.rewriting.bolt import bolted, compiled
from tests.samples.build import build
from tests.unwind.world import CODE, module, sp_based

AMD64 = BY_NAME["amd64"]
BY_SFRAME, BY_CFI = sp_based(AMD64, 16), sp_based(AMD64, 24)
PC = CODE + 4
SIGNAL = CODE + 0x100
"""A function that SFrame marks as a signal trampoline."""
OUTSIDE = CODE + 0x200


def made_up(rewriter: str = "") -> Modules:
    given = module(
        AbiNumber.AMD64_ENDIAN_LITTLE, {(CODE, 0x40): [(0, BY_SFRAME)], (SIGNAL, 8): [(0, BY_SFRAME)]}, 3, [SIGNAL]
    )
    return Modules(AMD64, [Module("made-up", given.ranges, lambda: given.section, load_rewriter=lambda: rewriter)])


def judging(sframe: Verdict, cfi: Verdict) -> JudgeRule:
    def judge(found: Found, pc: int, rule: UnwindRule) -> Verdict:
        assert (found.match.rule, pc) == (BY_SFRAME, PC)
        return {BY_SFRAME: sframe, BY_CFI: cfi}[rule]

    return judge


def no_judge(_found: Found, _pc: int, _rule: UnwindRule) -> Verdict:
    raise AssertionError("the code is asked without need")


def giving(result: CfiMatch | SFrameError | None) -> Callable[[int], CfiMatch | None]:
    def find(_pc: int) -> CfiMatch | None:
        if isinstance(result, SFrameError):
            raise result
        return result

    return find


def cfi(rule: UnwindRule, signal: bool = False) -> CfiMatch:
    return CfiMatch(rule, signal)


SAME_WITH_MORE = BY_SFRAME._replace(others=((3, COMPUTED),))


@pytest.mark.parametrize(
    ("found", "pc", "source", "reason"),
    [
        (None, OUTSIDE, Source.NONE, Reason.NO_DATA),
        (None, PC, Source.SFRAME, Reason.NO_CFI),
        (cfi(BY_CFI), OUTSIDE, Source.CFI, Reason.NO_SFRAME),
        (FormatError("malformed"), PC, Source.SFRAME, Reason.CFI_UNUSABLE),
        (FormatError("malformed"), OUTSIDE, Source.NONE, Reason.CFI_UNUSABLE),
        (UnsupportedExpressionError("a loop"), PC, Source.CFI, Reason.COMPUTED),
        (UnsupportedExpressionError("a loop"), OUTSIDE, Source.CFI, Reason.NO_SFRAME),
        (cfi(SAME_WITH_MORE), PC, Source.CFI, Reason.AGREE),
        (cfi(SAME_WITH_MORE, signal=True), PC, Source.CFI, Reason.SIGNAL),
        (cfi(SAME_WITH_MORE, signal=True), SIGNAL, Source.CFI, Reason.AGREE),
        (cfi(SAME_WITH_MORE), SIGNAL, Source.CFI, Reason.SIGNAL),
        (cfi(OUTERMOST), PC, Source.CFI, Reason.OUTERMOST),
        (cfi(BY_CFI), PC, Source.CFI, Reason.DIFFER),
        (cfi(BY_SFRAME._replace(fp=COMPUTED)), PC, Source.CFI, Reason.DIFFER),
    ],
)
def test_without_the_code(found: CfiMatch | SFrameError | None, pc: int, source: Source, reason: Reason) -> None:
    precedence = Precedence(made_up(), giving(found))
    decision = precedence.decisions[pc]
    assert decision[:2] == (source, reason)
    rule = found.rule if isinstance(found, CfiMatch) else None
    assert decision.rule == {Source.SFRAME: BY_SFRAME, Source.CFI: rule, Source.NONE: None}[source]
    assert precedence.prefers_cfi(pc) == (source is Source.CFI and reason not in (Reason.NO_SFRAME, Reason.AGREE))


PROVED, REFUTED, UNKNOWN = Verdict


@pytest.mark.parametrize(
    ("sframe", "its_cfi", "expected"),
    [
        (PROVED, REFUTED, (Source.SFRAME, Reason.CODE)),
        (REFUTED, PROVED, (Source.CFI, Reason.CODE)),
        (PROVED, UNKNOWN, (Source.CFI, Reason.DIFFER)),
        (PROVED, PROVED, (Source.CFI, Reason.DIFFER)),
        (REFUTED, REFUTED, (Source.CFI, Reason.DIFFER)),
        (UNKNOWN, REFUTED, (Source.CFI, Reason.DIFFER)),
        (UNKNOWN, UNKNOWN, (Source.CFI, Reason.DIFFER)),
    ],
)
def test_the_code_decides_where_it_proves_one_and_refutes_the_other(
    sframe: Verdict, its_cfi: Verdict, expected: tuple[Source, Reason]
) -> None:
    precedence = Precedence(made_up(), giving(cfi(BY_CFI)), judging(sframe, its_cfi))
    assert precedence.decisions[PC][:2] == expected


@pytest.mark.parametrize("found", [None, cfi(SAME_WITH_MORE), cfi(OUTERMOST)])
def test_the_code_is_asked_only_where_rules_differ(found: CfiMatch | None) -> None:
    for pc in (PC, OUTSIDE):
        assert Precedence(made_up(), giving(found), no_judge).decisions[pc] is not None


@pytest.mark.parametrize(
    ("found", "source", "reason"),
    [
        (None, Source.SFRAME, Reason.NO_CFI),
        (FormatError("malformed"), Source.SFRAME, Reason.CFI_UNUSABLE),
        (cfi(SAME_WITH_MORE), Source.CFI, Reason.AGREE),
        (cfi(BY_CFI), Source.CFI, Reason.REWRITTEN),
        (cfi(OUTERMOST), Source.CFI, Reason.REWRITTEN),
    ],
)
def test_sframe_of_a_rewritten_file_is_used_only_where_there_is_no_cfi(
    found: CfiMatch | SFrameError | None, source: Source, reason: Reason
) -> None:
    decision = Precedence(made_up("rewritten by a test"), giving(found), no_judge).decisions[PC]
    assert decision[:2] == (source, reason)


@pytest.mark.parametrize(
    ("rewriter", "rule", "source", "reason"),
    [
        ("", SAME_WITH_MORE, Source.SFRAME, Reason.NOT_FOLLOWED),
        ("", BY_CFI, Source.SFRAME, Reason.NOT_FOLLOWED),
        ("rewritten by a test", SAME_WITH_MORE, Source.SFRAME, Reason.NOT_FOLLOWED),
        ("rewritten by a test", BY_CFI, Source.CFI, Reason.REWRITTEN),
    ],
)
def test_cfi_that_the_consumer_cannot_follow(rewriter: str, rule: UnwindRule, source: Source, reason: Reason) -> None:
    precedence = Precedence(made_up(rewriter), giving(cfi(rule)), no_judge, can_follow=lambda asked: asked != rule)
    assert precedence.decisions[PC][:2] == (source, reason)


def test_cfi_that_the_consumer_cannot_evaluate() -> None:
    error = UnsupportedExpressionError("a loop")
    precedence = Precedence(made_up(), giving(error), evaluates=False)
    assert precedence.decisions[PC] == Decision(Source.SFRAME, Reason.CFI_UNUSABLE, BY_SFRAME)
    assert precedence.decisions[OUTSIDE] == Decision(Source.NONE, Reason.CFI_UNUSABLE, None)


def decided(path: Path) -> tuple[Modules, Precedence]:
    file = File(path)
    modules = Modules(AMD64, [file.module], read=file.read)
    return modules, Precedence(modules)


def cfa_by_pyelftools(path: Path) -> Callable[[int], str | None]:
    """Return a function that gives the CFA of the CFI for an address, in readelf's notation; ``None``: no CFI.

    The FDEs are those of ``.eh_frame_hdr``.  BOLT keeps the FDEs of the linker, too, and of both the index names one:
    the linker's, if BOLT could not rewrite the function because there was no room for it.
    """
    with path.open("rb") as stream:
        file = ELFFile(stream)
        index, frames = (file.get_section_by_name(name) for name in (".eh_frame_hdr", ".eh_frame"))
        data = index.data()
        (count,) = struct.unpack_from("<I", data, 8)
        chosen = {
            struct.unpack_from("<i", data, 16 + 8 * number)[0] + index["sh_addr"] - frames["sh_addr"]
            for number in range(count)
        }
        entries = [entry for entry in file.get_dwarf_info().EH_CFI_entries() if entry.offset in chosen]
        found = [entry.get_decoded().table for entry in entries]
        ends = [entry["initial_location"] + entry["address_range"] for entry in entries]
        assert len(entries) == count

    def cfa(pc: int) -> str | None:
        for rows, end in zip(found, ends):
            if rows and rows[0]["pc"] <= pc < end:
                row = next(row for row in reversed(rows) if row["pc"] <= pc)
                if row.get(16) is not None and row[16].type == "UNDEFINED":
                    return "undefined"
                return "exp" if row["cfa"].expr is not None else f"r{row['cfa'].reg}{row['cfa'].offset:+d}"
        return None

    return cfa


def written(decision: Decision) -> str | None:
    """Return the CFA of a decision in the same notation."""
    if decision.rule is None or decision.rule.cfa is None:
        return None if decision.rule is None else "undefined"
    return f"r{decision.rule.cfa.base}{decision.rule.cfa.offset:+d}"


def test_a_rewritten_program_is_unwound_by_its_cfi(tmp_path: Path) -> None:
    path = bolted(compiled(tmp_path))
    modules, precedence = decided(path)
    expected, reasons = cfa_by_pyelftools(path), set()
    for pc in (pc for start, end in modules.modules[0].ranges for pc in range(start, end)):
        cfa, decision = expected(pc), precedence.decisions[pc]
        if cfa is None:
            assert decision.source is not Source.CFI, hex(pc)
        elif cfa != "exp":  # of the PLT: it is computed from pc
            assert written(decision) == cfa, hex(pc)
            reasons.add(decision.reason)
    assert reasons >= {Reason.AGREE, Reason.REWRITTEN}
    assert not reasons - {Reason.AGREE, Reason.REWRITTEN, Reason.NO_SFRAME, Reason.OUTERMOST}
    (line,) = (line for line in to_text(modules, "auto", (), precedence) if "not used" in line)
    assert "rows are not used, the first at 0x" in line
    assert ": the file was rewritten by BOLT after linking (.bolt.org.eh_frame" in line
    assert not any("not used" in line for line in to_text(modules, "always", ()))


@pytest.mark.parametrize("name", ["leaf", "signals", "recursion", "sframe_only", "plt", "plt_ibt", "plt_now"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_programs_as_they_are_linked(name: str, version: int) -> None:
    path = build(name, version=version)
    modules, precedence = decided(path)
    expected = cfa_by_pyelftools(path)
    kinds = set()
    for pc in (pc for start, end in modules.modules[0].ranges for pc in range(start, end)):
        has_sframe, decision = isinstance(modules.results[pc], Found), precedence.decisions[pc]
        kinds.add((decision.source, decision.reason))
        if expected(pc) is None:
            assert decision.source is (Source.SFRAME if has_sframe else Source.NONE)
        elif not has_sframe:
            assert decision[:2] == (Source.CFI, Reason.NO_SFRAME)
        else:
            assert decision.reason in (Reason.AGREE, Reason.STUB_CODE), hex(pc)
    assert ((Source.SFRAME, Reason.NO_CFI) in kinds) == (name == "sframe_only")
    assert passed_over(modules.modules[0], modules, precedence) == []


FIBER = """\
volatile int sink;
__attribute__((noinline)) void work(int n) { sink += n; }
__attribute__((noinline)) int fiber(int n)
{
    __asm__ volatile(".cfi_undefined rip");
    work(n);
    return sink + n;
}
int main(void) { return fiber(1); }
"""


def test_cfi_that_marks_the_outermost_frame_is_believed(tmp_path: Path) -> None:
    """GNU as before 2.46 leaves the mark out of SFrame."""
    source, path = tmp_path / "fiber.c", tmp_path / "fiber"
    source.write_text(FIBER, encoding="ascii")
    run("gcc", f"-B{tools_for('amd64', 2)}/", "-O1", "-fno-stack-protector", "-Wa,--gsframe", source, "-o", path)
    modules, precedence = decided(path)
    marked, expected = [], cfa_by_pyelftools(path)
    for pc in (pc for start, end in modules.modules[0].ranges for pc in range(start, end)):
        found = modules.results[pc]
        if expected(pc) == "undefined" and isinstance(found, Found):
            assert precedence.decisions[pc] == Decision(Source.CFI, Reason.OUTERMOST, OUTERMOST._replace())
            assert not found.rule.ra_undefined
            marked.append(pc)
    (counted,) = passed_over(modules.modules[0], modules, precedence)
    assert (counted.reason, counted.first) == (Reason.OUTERMOST, min(marked))
    assert sum("the CFI marks the outermost frame" in line for line in to_text(modules, "auto", (), precedence)) == 1


WRONG_CFI = """\
    .globl wrong
    .type wrong, @function
wrong:
    .cfi_startproc
    subq $24, %rsp
    .cfi_def_cfa_offset {offset}
    call other
    addq $24, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size wrong, .-wrong
    .globl other
    .type other, @function
other:
    .cfi_startproc
    nop
    ret
    .cfi_endproc
    .size other, .-other
"""


@pytest.mark.parametrize(("sframe", "its_cfi", "source"), [(32, 40, Source.SFRAME), (40, 32, Source.CFI)])
def test_the_code_of_a_real_function_decides(sframe: int, its_cfi: int, source: Source, tmp_path: Path) -> None:
    """SFrame comes from one object file, and CFI from another one with other directives for the same code."""
    package_needed("pyvex")
    tools = tools_for("amd64", 3)
    files = {offset: tmp_path / f"of{offset}" for offset in (sframe, its_cfi)}
    for offset, path in files.items():
        text = path.with_suffix(".s")
        text.write_text(WRONG_CFI.format(offset=offset), encoding="ascii")
        run("gcc", f"-B{tools}/", "-nostdlib", "-static", "-Wl,-e,wrong", "-Wa,--gsframe", text, "-o", path)
    file, other = File(files[sframe]), File(files[its_cfi])
    modules = Modules(AMD64, [file.module], read=file.read)
    start = file.module.ranges[0][0]
    names = {start: "wrong"}
    code = ProcessCode(modules, file.read, lambda pc: names.get(pc, ""))
    small = rule_judge(code, max_size=1)
    for judge in (None, small, rule_judge(code, most=0)):
        decision = Precedence(modules, other.module.cfi_match, judge).decisions[start + 5]
        assert decision[:2] == (Source.CFI, Reason.DIFFER)
    decision = Precedence(modules, other.module.cfi_match, rule_judge(code)).decisions[start + 5]
    assert decision[:2] == (source, Reason.CODE)
