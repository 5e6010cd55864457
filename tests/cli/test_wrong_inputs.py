"""What commands say about inputs that they do not read: one line, with what was expected and what helps."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from tests.cli.sections import AMD64, elf
from tests.elf.objects import run
from tests.missing import package_needed
from tests.samples.build import build

ONE_FILE = ["dump", "dump --json", "show", "lookup", "annotate"]
"""Commands that read one ELF file."""
SEVERAL_FILES = ["verify", "verify --json", "verify --against code", "lint"]
"""Commands that also read archives and folders."""
CONVERT = "convert -o out"

ET_CORE = 4


def said(capsys: pytest.CaptureFixture[str], command: str, *arguments: object) -> str:
    """Run a command that fails, and return what it says, without the name of the program."""
    if command in ("show", "annotate", "verify --against code"):
        package_needed("pyvex")
    words = [*command.split(), *map(str, arguments), *(["main"] if command == "lookup" else [])]
    with pytest.raises(SystemExit) as ended:
        sys.exit(main(words))
    assert ended.value.code == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    return line.removeprefix("sframe-unwind: ").rstrip("\n")


@pytest.fixture
def archives(tmp_path: Path) -> tuple[Path, Path]:
    """Return an archive and a thin archive."""
    ordinary, thin = tmp_path / "lib.a", tmp_path / "thin.a"
    run("ar", "rcs", ordinary, build("leaf"))
    run("ar", "rcsT", thin, build("leaf"))
    return ordinary, thin


@pytest.mark.parametrize("command", [*ONE_FILE, "backtrace --core"])
def test_archives(command: str, archives: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    ordinary, thin = archives
    expected = f"{ordinary}: an archive, expected one of its members: `ar x` extracts them"
    assert said(capsys, command, ordinary) == expected
    assert said(capsys, command, thin) == f"{thin}: a thin archive, expected one of the files that it names"


@pytest.mark.parametrize("command", [*ONE_FILE, *SEVERAL_FILES, CONVERT])
def test_core_files(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Core files contain no tables; annotate found no function in them and succeeded."""
    monkeypatch.chdir(tmp_path)
    core = tmp_path / "core"
    elf(core, AMD64)
    content = bytearray(core.read_bytes())
    struct.pack_into("<H", content, 16, ET_CORE)
    core.write_bytes(content)
    advice = "expected a program or library; `sframe-unwind backtrace --core` shows its stacks"
    assert said(capsys, command, core) == f"{core}: a core file, {advice}"


@pytest.mark.parametrize("command", [*ONE_FILE, *SEVERAL_FILES, CONVERT, "backtrace --core"])
def test_standard_input(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "expected the name of a file, found '-': standard input is not read (try " in said(capsys, command, "-")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [*ONE_FILE, CONVERT, "backtrace --core"])
def test_folders(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said(capsys, command, "/") == "/: Is a directory, expected a file"


@pytest.mark.parametrize("command", [*ONE_FILE, *SEVERAL_FILES, CONVERT, "backtrace --core"])
def test_scripts(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n", encoding="ascii")
    expected = "not a readable ELF file: it begins with b'#!/b', expected b'\\x7fELF'"
    assert said(capsys, command, script) == f"{script}: {expected}"


@pytest.mark.parametrize("command", ["verify", "lint"])
def test_function_in_place_of_a_file(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """dump and show take it after FILE; verify and lint take several files."""
    advice = "; a function is named by --function mistyped"
    program, absent = build("leaf"), tmp_path / "absent"
    assert said(capsys, command, program, "mistyped") == f"mistyped: No such file or directory{advice}"
    assert said(capsys, command, "mistyped") == "mistyped: No such file or directory"
    assert said(capsys, command, program, absent) == f"{absent}: No such file or directory"


@pytest.mark.parametrize(
    ("command", "option", "what"),
    [("backtrace", "--pid", "process"), ("perf x", "--pid", "process"), ("perf x", "--tid", "thread")],
)
def test_number_of_a_process(command: str, option: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = f": argument {option}: expected the number of a {what}, found 'sh' (try "
    assert expected in said(capsys, f"{command} {option} sh")


def test_empty_address(capsys: pytest.CaptureFixture[str]) -> None:
    program = build("leaf")
    assert said(capsys, "dump", program, "") == f"{program}: '': neither an address nor a symbol of the file"
