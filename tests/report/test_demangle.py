"""Demangling of names: a short name can stand for a text of gigabytes, which must not be made."""

from __future__ import annotations

import subprocess

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


def test_names_with_many_references_are_those_of_cxxfilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demangling, "_SECONDS", HANG)
    names = [nested_pairs(levels) for levels in range(10)]
    texts = [demangle(name) for name in names]
    assert texts == of_cxxfilt(names)
    assert len(texts[-1]) > 10_000


@pytest.mark.parametrize("levels", [20, 26, 36])
def test_a_name_with_a_huge_text_stays_mangled(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name = nested_pairs(levels)
    assert demangle(name) == name
    monkeypatch.setattr(demangling, "_SECONDS", HANG)
    assert demangle("_Z4main") == "main"
    assert demangle(nested_pairs(9)) == of_cxxfilt([nested_pairs(9)])[0]  # by another process than before


def test_a_long_text_without_references_stays_mangled() -> None:
    assert demangle("_Z" + "1" * 5000) == "_Z" + "1" * 5000
    assert demangle("_ZN1aE") == "a"
    assert demangle("main") == "main"
