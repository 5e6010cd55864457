"""Damaged sections: both implementations agree, the decoder agrees, and the time is bounded."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from lab.fuzz.fields import fields
from lab.fuzz.mutations import Mutator
from lab.fuzz.seeds import Seed, seeds
from lab.lint import mutations
from sframe_unwind.errors import FormatError
from sframe_unwind.lint import PROFILES, SPEC, gather, lint, lint_section
from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.verdict import Outcome
from sframe_unwind.sframe.encode import SectionSpec, encode
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Table
from tests.elf.many_sections import many_sections
from tests.lint.sections import subject, table
from tests.work import at_most_lines

COUNT = 1500


def test_two_implementations_of_linux_agree() -> None:
    """`python -m lab.lint.mutations` tries 20,000."""
    seen: Counter[str] = Counter()
    assert mutations.compare(range(COUNT), seen) == []
    assert min(seen["refused"], seen["loses"], seen["accepted"]) > COUNT // 40


def test_the_profile_of_the_specification_agrees_with_the_decoder() -> None:
    """It refuses the same sections as the decoder, and loses the functions whose rows the decoder cannot decode."""
    mutator = Mutator(seeds(), fields)
    seen: Counter[str] = Counter()
    for number in range(COUNT):
        seed = mutator.mutate(Random(number))
        ours, theirs = _by_lint(seed), _by_decoder(seed)
        assert ours == theirs, number
        seen["refused" if ours is None else "loses" if ours else "accepted"] += 1
    assert min(seen["refused"], seen["loses"], seen["accepted"]) > COUNT // 40


def _by_lint(seed: Seed) -> list[int] | None:
    """Return the offsets of the lost FDEs under the first header; ``None``: the section is refused."""
    whole = Section(next(one.data for one in seeds() if one.name == seed.name), seed.address)
    assert whole.arch is not None
    # The decoder does not check whether code is outside the text.
    around = subject(data=seed.data, arch=whole.arch, text=(0, 1 << 64))._replace(address=seed.address)
    (judgement,) = lint_section(around, [SPEC]).judgements
    if judgement.outcome is Outcome.REFUSED:
        return None
    lost = {(loss.start, loss.size) for loss in judgement.losses if c.CONCATENATED not in loss.rules}
    functions = [function for function in gather(around).functions if not function.table]
    undecodable = {rule for rule, effect in SPEC.effects.items() if effect.then == "the function cannot be decoded"}
    return [
        function.offset
        for function in functions
        if any(rule in undecodable for rule, _ in function.broken) and (function.start, function.size) in lost
    ]


def _by_decoder(seed: Seed) -> list[int] | None:
    whole = Section(next(one.data for one in seeds() if one.name == seed.name), seed.address)
    try:
        section = Section(seed.data, seed.address)
    except FormatError:
        return None
    if not section.tables:
        return []
    first: Table = section.tables[0]
    if first.arch is not whole.arch:
        return None
    return [
        offset
        for number, offset in enumerate(first.start_fields)
        if first.extent(number)[1] and not _is_decodable(first, number)
    ]


def _is_decodable(first: Table, number: int) -> bool:
    try:
        first.rows(first.function(number))
    except FormatError:
        return False
    return True


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_no_bytes_raise_what_is_not_documented(profile: object) -> None:
    mutator = Mutator(seeds(), fields)
    for number in range(COUNT, 2 * COUNT):
        seed = mutator.mutate(Random(number))
        around = subject(data=seed.data)._replace(address=seed.address)
        lint_section(around, [profile])  # type: ignore[list-item]


def test_functions_that_claim_the_same_rows_over_and_over() -> None:
    """2,000 FDEs that each claim 1,000 rows, of 2,000 bytes, give a clear message in bounded time."""
    fdes, rows = 2_000, 1_000
    start = struct.Struct("<qII")
    area = struct.pack("<HBBB", rows, 0x10, 0, 16) + b"\0\0" * rows
    header = struct.pack("<HBBBbbBIIIII", 0xDEE2, 3, 5, 3, 0, -8, 0, fdes, rows, len(area), 0, fdes * start.size)
    data = header + start.pack(0, 16, 0) * fdes + area
    with at_most_lines(10_000 * fdes), pytest.raises(FormatError, match="the same rows over and over"):
        lint_section(subject(data=data), list(PROFILES.values()))


def test_work_for_many_headers() -> None:
    """2,000 tables of one function each."""
    count = 2_000
    content = encode(SectionSpec(0x3000, (table(table().functions[0]),) * count))
    with at_most_lines(1_000 * count):
        (judgement,) = lint_section(subject(data=content), [PROFILES["linux-user"]]).judgements
    assert len(judgement.losses) == count - 1


def test_work_for_large_sections() -> None:
    """2,000 functions, of which half overlap the next."""
    count = 2_000
    functions = [
        table().functions[0]._replace(start=0x1000 + 64 * number, size=64 + number % 2 * 8) for number in range(count)
    ]
    large = subject(table(*functions), text=(0x1000, 0x1000 + 64 * (count + 1)))
    with at_most_lines(1_000 * count):
        (judgement,) = lint_section(large, [PROFILES["linux-user"]]).judgements
    assert judgement.outcome is Outcome.ACCEPTED  # the overlap is found by the next FDE


@pytest.mark.parametrize("profile", ["spec", "linux-kernel"])
def test_work_for_a_section_for_each_function(profile: str, tmp_path: Path) -> None:
    """It must not grow with the product of sections and functions."""
    count = 1_000
    file = many_sections(tmp_path, count)
    with at_most_lines(3_000 * count):
        (section,) = lint(file, [PROFILES[profile]]).sections
    assert Counter(shown.finding.rule for shown in section.findings)[c.CODE_WITHOUT_FDE] == count
