"""Readers do what ``lint`` predicts for damaged sections; ``python -m lab.readers.mutated`` tries 20,000 for each."""

from __future__ import annotations

from typing import Callable

import pytest

from lab.readers.mutated import Fate, Tally, compare
from lab.readers.readers import UnavailableError, glibc, libsframe, linux, ours
from lab.readers.running import Reader
from sframe_unwind.lint.verdict import Outcome
from tests.missing import absent

COUNT = 300
READERS: dict[str, Callable[[], Reader]] = {
    "ours": ours,
    "libsframe 2.44": lambda: libsframe("2.44"),
    "libsframe 2.47": lambda: libsframe("2.47"),
    "glibc": glibc,
    "linux": linux,
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_does_what_its_profile_says(name: str) -> None:
    try:
        reader = READERS[name]()
    except UnavailableError as error:
        absent(str(error))
    tally = Tally()
    for one in compare(reader, range(COUNT)):
        tally.add(one)
    assert tally.wrong == [], "\n".join(tally.lines())
    assert tally.seen[Outcome.ACCEPTED, Fate.SAME] > COUNT // 10
    assert tally.seen[Outcome.LOSES, Fate.SAME] > COUNT // 40
    assert tally.seen[Outcome.REFUSED, Fate.REFUSES] > COUNT // 10
