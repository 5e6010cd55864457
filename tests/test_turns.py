"""The workers of a run import the same files, each beginning with its own part."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.turns import import_in_turn, rotated


def test_each_worker_begins_with_its_own_part() -> None:
    assert [rotated("abcdefg", worker, 3) for worker in range(3)] == [list("abcdefg"), list("cdefgab"), list("efgabcd")]
    assert rotated("ab", 3, 4) == ["b", "a"]


def test_a_file_that_fails_is_left_to_pytest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    names = ("turn_first", "turn_fails", "turn_skips", "turn_last")
    contents = {
        "turn_fails": "raise OSError\n",
        "turn_skips": "from tests.missing import absent\nabsent('no compiler')\n",
    }
    for name in names:
        (tmp_path / f"{name}.py").write_text(contents.get(name, ""), encoding="utf-8")
    import_in_turn(tmp_path, [tmp_path / f"{name}.py" for name in names], 1, 2)
    assert [name in sys.modules for name in names] == [True, False, False, True]
    for name in names:
        sys.modules.pop(name, None)
