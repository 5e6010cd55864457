"""Names and lines of source from a separate debug file: the output is that for the file before it was stripped."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sframe_unwind import elf
from sframe_unwind.cli import main
from tests.process.debug_server import debug_server
from tests.samples.build import build

FUNCTION = "sample_stop"
"""A function that is not in the dynamic symbols."""


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return what `show` prints about the function, without an error."""
    main(["show", *map(str, arguments), FUNCTION, "--no-code"])
    output, errors = capsys.readouterr()
    assert errors == ""
    return str(output)


@pytest.fixture
def whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Make `program`, and the debug file `split`, in the folder of the test; return the output before that."""
    program = Path(shutil.copy(build("callback"), tmp_path / "program"))
    expected = shown(capsys, program)
    assert "callback.c:" in expected or "sample.h:" in expected
    subprocess.run(["objcopy", "--only-keep-debug", program, tmp_path / "split"], check=True)
    subprocess.run(["strip", program], check=True)
    return expected


def test_by_debug_link(tmp_path: Path, whole: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program"
    assert main(["show", str(program), FUNCTION, "--debug-dir", str(tmp_path)]) == 2  # nothing names the debug file
    assert "neither an address nor a symbol" in capsys.readouterr().err
    subprocess.run(["objcopy", f"--add-gnu-debuglink={tmp_path / 'split'}", program], check=True)
    assert shown(capsys, program) == whole


def test_by_build_id(tmp_path: Path, whole: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program"
    place = tmp_path / "tree" / placed(program)
    place.parent.mkdir(parents=True)
    (tmp_path / "split").rename(place)
    assert shown(capsys, program, "--debug-dir", tmp_path / "tree") == whole


def placed(program: Path) -> str:
    """Return the path of the debug file below a debug folder."""
    with elf.opened(program) as binary:
        return f".build-id/{binary.build_id[:2]}/{binary.build_id[2:]}.debug"


def test_from_a_server(
    tmp_path: Path, whole: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    path = f"/buildid/{placed(program).removeprefix('.build-id').replace('/', '').removesuffix('.debug')}/debuginfo"
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    with debug_server({path: (tmp_path / "split").read_bytes()}) as (address, asked):
        monkeypatch.setenv("DEBUGINFOD_URLS", address)
        assert main(["show", str(program), FUNCTION]) == 2
        assert not asked  # only where the user wants it
        capsys.readouterr()
        assert shown(capsys, program, "--debuginfod") == whole
