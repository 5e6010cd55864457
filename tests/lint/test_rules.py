"""Every rule: a section that breaks it, its entry in the documentation, and the reactions of consumers."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from sframe_unwind.lint import PROFILES, lint_section
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.catalogue import RULES, Rule
from sframe_unwind.lint.profiles import Kind
from sframe_unwind.lint.subject import Subject
from sframe_unwind.lint.verdict import Judgement, Outcome
from sframe_unwind.sframe.constants import ARCH_BY_ABI, PcType
from sframe_unwind.sframe.encode import RowSpec
from tests.lint.sections import (
    AARCH64,
    ADDRESS,
    BROKEN,
    FDE_SIZE,
    FIRST,
    HEADER_SIZE,
    MASK,
    SECOND,
    SP_8,
    SP_16,
    flexible,
    one,
    relocated,
    subject,
    table,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lint-reference.md"
EVERY = list(PROFILES.values())
TO_WHOM = {Kind.REFUSES: "refuse", Kind.LOSES: "lose", Kind.MINDS: "mind"}


def judged(linted: Subject, profile: str) -> Judgement:
    (judgement,) = lint_section(linted, [PROFILES[profile]]).judgements
    return judgement


def broken(linted: Subject) -> set[Rule]:
    return {shown.finding.rule for shown in lint_section(linted, EVERY).findings}


def test_numbers_and_names_are_of_one_rule_each() -> None:
    assert len({rule.number for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES) > 50


def test_every_rule_has_a_section_that_breaks_it() -> None:
    assert set(BROKEN) == set(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_a_section_that_breaks_the_rule(rule: Rule) -> None:
    assert rule in broken(BROKEN[rule]())


def test_a_good_section_breaks_none() -> None:
    found = lint_section(subject(), [PROFILES["spec"], PROFILES["linux-user"]])
    assert [judgement.outcome for judgement in found.judgements] == [Outcome.ACCEPTED, Outcome.ACCEPTED]
    assert found.findings == ()
    aligned = [part._replace(rows=(SP_16._replace(start=0),)) for part in (FIRST, SECOND)]
    good = subject(table(*aligned, abi=AARCH64), arch=ARCH_BY_ABI[AARCH64])
    assert judged(good, "linux-kernel").outcome is Outcome.ACCEPTED
    assert judged(subject(table(version=2)), "glibc").outcome is Outcome.ACCEPTED


def entries() -> dict[str, list[str]]:
    """Return the rows of the page's tables, by the rule in their first cell."""
    rows = re.findall(r"^\| (SF\d+ [\w-]+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len({rule for rule, _ in rows})
    return {rule: cells.split(" | ") for rule, cells in rows}


def test_the_page_has_every_rule() -> None:
    assert list(entries()) == [str(rule) for rule in RULES]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_the_page_says_what_why_to_whom_and_how_to_mend_it(rule: Rule) -> None:
    what, why, to_whom, mend = entries()[str(rule)]
    assert min(map(len, (what, why, mend))) > 3
    said = []
    for kind, verb in TO_WHOM.items():
        names = [
            profile.name
            for profile in EVERY
            if (effect := profile.effects.get(rule)) is not None and effect.kind is kind
        ]
        if names:
            said.append(f"{', '.join(names)} {verb}{'s' * (len(names) == 1)}")
    if rule in (c.VERSION_NOT_READ, c.ABI_NOT_READ):
        said = ["the consumer refuses"]
    assert to_whom == ("; ".join(said) or "none known")


@pytest.mark.parametrize(
    ("linted", "lost"),
    [
        (one(SP_16), {0x1000: 1}),
        (subject(table(MASK._replace(rows=(SP_16._replace(start=6),)), SECOND)), {0x1000: 24}),
        (subject(table(FIRST._replace(size=0x60), SECOND._replace(size=0x10))), {0x1000: 0x10}),
        (subject(table(FIRST), table(SECOND)), {0x1040: 0x40}),
        (flexible(0x2, 8), {0x1000: 0x40}),
        (subject(table(FIRST, SECOND._replace(rows=(), signal=True))), {0x1040: 0x40}),
    ],
)
def test_what_linux_loses(linted: Subject, lost: dict[int, int]) -> None:
    judgement = judged(linted, "linux-user")
    assert judgement.outcome is Outcome.LOSES
    assert {loss.start: loss.size for loss in judgement.losses} == lost
    assert judgement.lost == sum(lost.values())


def test_an_object_file_is_judged_by_those_who_read_one() -> None:
    outcomes = {name: judged(relocated(), name).outcome for name in PROFILES}
    assert outcomes["linux-user"] is outcomes["glibc"] is Outcome.NOT_LOADED
    assert outcomes["spec"] is Outcome.ACCEPTED


def test_what_happens_then_is_said() -> None:
    for rule in (c.FDE_SAME_ADDRESS, c.ROW_WORD_SIZE):
        judgement = judged(BROKEN[rule](), "linux-user")
        assert any(
            refusal.finding.rule is rule and "removes the whole section" in refusal.then
            for refusal in judgement.refusals
        )


def version_2(*rows: RowSpec, **fields: object) -> Subject:
    """Return a section of version 2, which glibc reads, with one function with the given rows, and another function."""
    return subject(table(FIRST._replace(rows=rows, **fields), SECOND, version=2))  # type: ignore[arg-type]


def cut(linted: Subject, size: int) -> Subject:
    """Return the same section, truncated."""
    return linted._replace(data=linted.data[:-size])


def with_rows_size(linted: Subject, size: int) -> Subject:
    """Return the same section with another size of the FRE sub-section in its header."""
    data = bytearray(linted.data)
    struct.pack_into("<I", data, 16, size)
    return linted._replace(data=bytes(data))


def test_glibc_reads_after_the_section() -> None:
    """`backtrace` of glibc 2.43 ends in SIGSEGV if rows continue after the section."""
    judgement = judged(cut(version_2(SP_8, SP_16), 2), "glibc")
    assert judgement.outcome is Outcome.REFUSED
    assert {refusal.finding.rule for refusal in judgement.refusals} == {c.ROW_OUTSIDE_SECTION}


def test_glibc_goes_on_after_a_row_whose_words_have_no_size() -> None:
    """`backtrace` takes the words for bytes, and reads the other rows from wrong places (possible SIGSEGV)."""
    data = bytearray(version_2(SP_8, SP_16).data)
    data[HEADER_SIZE + 2 * 20 + 1] = 0x63  # the info byte of the first row
    judgement = judged(subject(data=bytes(data)), "glibc")
    assert {refusal.finding.rule for refusal in judgement.refusals} == {c.ROW_WORD_SIZE}
    # Likewise outside the FRE sub-section, whose size glibc does not read.
    judgement = judged(with_rows_size(subject(data=bytes(data)), 1), "glibc")
    assert {refusal.finding.rule for refusal in judgement.refusals} == {c.ROW_OUTSIDE_SECTION}


def test_before_version_3_libsframe_finds_no_cfa_in_a_row_without_words() -> None:
    outermost = RowSpec(0, 0)
    judgement = judged(version_2(outermost), "libsframe-2.44")
    assert [(loss.start, loss.size, loss.rules) for loss in judgement.losses] == [(0x1000, 0x40, (c.OUTERMOST,))]
    assert judged(one(outermost), "libsframe-2.47").outcome is Outcome.ACCEPTED


def test_glibc_does_not_read_the_size_of_the_rows() -> None:
    for size in (0, 1, 0x1000):
        assert judged(with_rows_size(version_2(SP_8, SP_16), size), "glibc").outcome is Outcome.ACCEPTED
        assert judged(with_rows_size(version_2(SP_8, SP_16), size), "spec").outcome is not Outcome.ACCEPTED


def test_glibc_uses_the_first_of_two_rows_at_the_start() -> None:
    judgement = judged(version_2(SP_8, SP_8, SP_16), "glibc")
    assert [(loss.start, loss.size, loss.rules) for loss in judgement.losses] == [(0x1000, 0x40, (c.ROW_SAME_START,))]
    assert judged(version_2(SP_8, SP_16, SP_16), "glibc").outcome is Outcome.ACCEPTED


def test_glibc_divides_only_where_it_reads_a_row() -> None:
    """An unknown FRE type ends the lookup before the division by the repetition size."""
    data = bytearray(version_2(SP_8, pc_type=PcType.MASK, repetition_size=16).data)
    data[HEADER_SIZE + 17] = 0  # the repetition size
    assert judged(subject(data=bytes(data)), "glibc").outcome is Outcome.REFUSED
    data[HEADER_SIZE + 16] |= 3  # the FRE type
    judgement = judged(subject(data=bytes(data)), "glibc")
    assert [loss.rules for loss in judgement.losses] == [(c.FRE_TYPE,)]


def test_functions_before_a_file_that_is_loaded_anywhere() -> None:
    """The address of the last function wraps in a file at a fixed address; in memory it is below the others'."""
    data = bytearray(subject().data)
    struct.pack_into("<q", data, HEADER_SIZE + FDE_SIZE, -ADDRESS - HEADER_SIZE - FDE_SIZE - 0x10)
    fixed = subject(data=bytes(data))
    assert judged(fixed, "linux-user").outcome is Outcome.LOSES
    refusals = judged(fixed._replace(is_movable=True), "linux-user").refusals
    assert [refusal.finding.rule for refusal in refusals] == [c.FDE_UNSORTED]
