"""Rows of a program with one changed field are detected, except those with the same meaning."""

from __future__ import annotations

import pytest

from lab.code.mutations import fates
from sframe_unwind.code.judge.judgement import Judgement
from tests.samples.build import build

MOST = 200


@pytest.mark.parametrize("abi", ["amd64", "aarch64", "s390x"])
def test_most_are_found(abi: str) -> None:
    """Changed rows with the same meaning are proved, and nearly all others are found wrong."""
    every = list(fates(build("plt" if abi == "amd64" else "leaf", abi), MOST, found=True))
    found = [fate.worst for fate in every]
    telling = len(found) - found.count(Judgement.PROVED)
    assert found.count(Judgement.WRONG) >= 0.95 * telling
    assert telling >= 0.8 * len(found)
    meanings = [(fate.worst, fate.meaning) for fate in every if fate.meaning is not None]
    assert len(meanings) == len(every)
    assert all(meaning.is_same for worst, meaning in meanings if worst is Judgement.PROVED)
    assert not any(meaning.is_same for worst, meaning in meanings if worst is Judgement.WRONG)
    executed, instructions = (sum(column) for column in zip(*(meaning[1:3] for _, meaning in meanings)))
    assert executed >= 0.9 * instructions
