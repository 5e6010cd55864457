"""Files of `convert --compact` are judged by functions, not by entries, which are parts of them or several of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind.cli import main
from tests.hanging import HANG
from tests.missing import absent

LIBRARIES = ("libz.so.1", "libgcc_s.so.1", "libm.so.6")


@pytest.fixture(scope="module")
def library() -> Path:
    for name in LIBRARIES:
        path = Path("/usr/lib/x86_64-linux-gnu") / name
        if path.exists():
            return path
    absent("no library of AMD64 is installed: compacted files stay untested")
    raise AssertionError


def judged(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Check a file against its code, require that there are no findings, and return the report."""
    capsys.readouterr()
    assert main(["verify", "--against", "code", "-j", "1", "--json", str(path)]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    result: dict[str, Any] = file["code"]
    return result


@pytest.fixture
def converted(library: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Return two copies of a library, one with a plain section and one with a compacted one."""
    plain, compact = tmp_path / "plain.so", tmp_path / "compact.so"
    main(["convert", str(library), "-o", str(plain)])
    main(["convert", str(library), "-o", str(compact), "--compact"])
    return plain, compact


def test_functions_are_those_of_cfi(converted: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    plain, compact = (judged(path, capsys) for path in converted)
    assert compact.pop("sframe_entries") not in (compact["functions"], 0)
    assert compact == plain
    assert compact["sframe"]["proved"] > 1000


def test_only_symbols_tell_functions_without_cfi(
    converted: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    plain, compact = (judged(without_cfi(path), capsys) for path in converted)
    assert compact["sframe"]["wrong"] == plain["sframe"]["wrong"] == 0
    symbols = sized_symbols(converted[1])
    assert 10 < compact["functions"] <= len(symbols) < plain["functions"]


def without_cfi(path: Path) -> Path:
    other = path.with_suffix(".without")
    command = ["objcopy", "--remove-section", ".eh_frame", "--remove-section", ".eh_frame_hdr", str(path), str(other)]
    subprocess.run(command, check=True, timeout=HANG, capture_output=True)
    return other


def sized_symbols(path: Path) -> set[str]:
    """Return the addresses of the functions that readelf lists."""
    command = ["readelf", "--dyn-syms", "--syms", "--wide", str(path)]
    lines = subprocess.run(command, check=True, timeout=HANG, capture_output=True, text=True).stdout.splitlines()
    fields = [line.split() for line in lines]
    return {field[1] for field in fields if len(field) > 7 and field[3] in ("FUNC", "IFUNC") and field[2] != "0"}
