"""Demangling of names: a short name can stand for a text of gigabytes, which must not be made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.report import demangle as demangling
from sframe_unwind.report.demangle import demangle
from tests.hanging import HANG

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def nested_pairs(levels: int) -> str:
    """Return the mangled name of a function with a parameter of nested pairs: each level doubles its length."""
    pairs = "".join(f"S_IS{digit}_S{digit}_E" for digit in _DIGITS[:levels])
    return f"_Z1fSt4pairIiiE{pairs}"


def of_cxxfilt(names: list[str]) -> list[str]:
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, timeout=HANG, check=True)
    return done.stdout.splitlines()


def test_names_with_many_references_are_those_of_cxxfilt() -> None:
    names = [nested_pairs(levels) for levels in range(10)]
    texts = [demangle(name) for name in names]
    assert texts == of_cxxfilt(names)
    assert len(texts[-1]) > 10_000


@pytest.mark.parametrize("levels", [20, 26, 36])
def test_a_name_with_a_huge_text_stays_mangled(levels: int) -> None:
    name = nested_pairs(levels)
    assert demangle(name) == name
    assert demangle("_Z4main") == "main"
    assert demangle(nested_pairs(9)) == of_cxxfilt([nested_pairs(9)])[0]  # by another process than before


def test_a_busy_machine_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is one of processor time: here the process gets none for two seconds."""
    busy = tmp_path / "python"
    busy.write_text(f"#!/bin/sh\nsleep 2\nexec '{sys.executable}' \"$@\"\n", encoding="utf-8")
    busy.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(busy))
    name = nested_pairs(8)
    assert demangling._Process().demangle(name) == of_cxxfilt([name])[0]


def test_endless_work_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A demangler that would take an hour of processor time is ended after a second or two."""
    script = tmp_path / "demangle.py"
    slow = "_demangler = lambda: lambda name: name if name == 'quick' else [None for _ in iter(int, 1)]"
    text = Path(demangling.__file__).read_text(encoding="utf-8")
    script.write_text(text.replace('if __name__ == "__main__":', f'{slow}\nif __name__ == "__main__":'))
    monkeypatch.setattr(demangling, "__file__", str(script))
    process = demangling._Process()
    assert [process.demangle(name) for name in ("quick", "endless", "quick")] == ["quick", "endless", "quick"]


def test_a_long_text_without_references_stays_mangled() -> None:
    assert demangle("_Z" + "1" * 5000) == "_Z" + "1" * 5000
    assert demangle("_ZN1aE") == "a"
    assert demangle("main") == "main"
