"""DWARF CFI made from SFrame: debuggers without the plugin show the whole stack of a program with only SFrame."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from lab.convert import debug_frame_readers
from sframe_unwind import elf
from sframe_unwind.cli import main
from sframe_unwind.convert.to_debug_frame import COPY, DEBUG_FILE, Wanted, convert_to_debug_frame
from tests.abis.debuggers import DEBUGGERS, debugger
from tests.gdb.driver import SETTINGS
from tests.hanging import HANG
from tests.lldb import debuggers as lldbs
from tests.lldb.driver import batch
from tests.samples import readelf
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS

SECONDS = HANG
NAMES = ["sample_stop", "innermost", "with_alloca", *["descend"] * 7, "main"]
"""The stack of the sample, from `sframe_only.c`."""


def in_gdb(name: str, program: Path, folder: Path) -> list[str]:
    """Return the names of the functions in GDB's stack."""
    before = [*SETTINGS, f"set debug-file-directory {folder}"]  # before the program is loaded
    arguments = [argument for command in before for argument in ("-iex", command)]
    arguments += [argument for command in ("break sample_stop", "run", "bt") for argument in ("-ex", command)]
    command = [debugger(name, "amd64").path, "-nx", "-batch", *arguments, str(program)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
    return re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S+) \(", shown, re.MULTILINE)


def in_lldb(path: str, program: Path, folder: Path) -> list[str]:
    commands = [f"settings set target.debug-file-search-paths {folder}", "b sample_stop", "run", "bt"]
    arguments = [argument for command in commands for argument in ("-O" if "set" in command else "-o", command)]
    shown = batch(path, *arguments, str(program))
    return re.findall(r"^ *\*? *frame #\d+: 0x[0-9a-f]+ [^`]+`(\w+)", shown[shown.rindex("(lldb) bt") :], re.MULTILINE)


def stacks(program: Path, folder: Path) -> dict[str, list[str]]:
    shown = {name: in_gdb(name, program, folder) for name in DEBUGGERS}
    return {**shown, **{name: in_lldb(lldbs.find(name), program, folder) for name in ("22.1", "newest")}}


def test_copy_of_a_program_with_symbols(tmp_path: Path) -> None:
    program, copy = build("sframe_only", "amd64", 3), tmp_path / "copy"
    # LLDB reads the instructions of a function that has a symbol, and needs no CFI here.
    assert all(len(in_gdb(name, program, tmp_path)) < len(NAMES) for name in DEBUGGERS)
    assert convert_to_debug_frame(program, copy, Wanted(COPY)).is_whole
    for name, shown in stacks(copy, tmp_path).items():
        assert shown[: len(NAMES)] == NAMES, name


def test_debug_file_of_a_stripped_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, output = build("sframe_only_stripped", "amd64", 3), tmp_path / "output"
    assert main(["convert", "--to", "debug_frame", str(program), "-o", str(output)]) == 0
    found = re.search(r"as (\.build-id/\S+\.debug)", capsys.readouterr().out)
    assert found
    assert all(len(shown) < len(NAMES) for shown in stacks(program, tmp_path).values())
    place = tmp_path / found[1]
    place.parent.mkdir(parents=True)
    output.rename(place)
    for name, shown in stacks(program, tmp_path).items():
        assert shown[0] == "sample_stop", name
        own = [frame for frame in shown if frame.startswith("unnamed_")]
        assert len(own) == len(NAMES) - 1, name
        assert [frame == own[2] for frame in own] == [frame == "descend" for frame in NAMES[1:]], name
        assert len(shown) > len(NAMES), name  # on to the C library


@pytest.mark.parametrize("form", [DEBUG_FILE, COPY])
@pytest.mark.parametrize("abi", list(ABIS))
def test_readelf_reads_it(tmp_path: Path, abi: str, form: str) -> None:
    program, output = build("free_sframe_only", abi, 3), tmp_path / "output"
    report = convert_to_debug_frame(program, output, Wanted(form))
    functions = [(one.start, one.end) for section in elf.load(program) for one in section.functions()]
    ranges = readelf.read_dwarf_ranges(toolchain(abi, 3), output)
    assert report.functions == len(functions) > 3
    assert sorted((one.start, one.stop) for one in ranges) == sorted(functions)


def test_functions_with_cfi_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, output = build("leaf", "amd64", 3), tmp_path / "output"
    assert main(["convert", "--to", "debug_frame", str(program), "-o", str(output)]) == 2
    assert capsys.readouterr().err == f"sframe-unwind: {program}: no function is described by SFrame alone\n"
    assert not output.exists()
    assert main(["convert", "--to", "debug_frame", "--all", str(program), "-o", str(output)]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--as", "section"], "convert: --as section with --to debug_frame, expected debug-file or copy"),
        (["--version", "3"], "convert: --version has no meaning with --to debug_frame"),
        (["--from", "dwarf"], "convert: --from has no meaning with --to debug_frame"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "--to", "debug_frame", *arguments, "x", "-o", "y"]) == 2
    assert capsys.readouterr().err == f"sframe-unwind: {message}\n"
    assert main(["convert", "--all", "x", "-o", "y"]) == 2
    assert capsys.readouterr().err == "sframe-unwind: convert: --all has no meaning with --to sframe\n"


def test_elfutils_reads_it(tmp_path: Path) -> None:
    """libunwind in Debian's build does not read it; `debug_frame_readers` tries more releases."""
    installed = debug_frame_readers.system("")
    _, _, bare, copy = debug_frame_readers.builds(tmp_path)
    stack = installed.tool("eu-stack")
    shown = [debug_frame_readers.attached(one, installed, stack, "-p") for one in (bare, copy)]
    assert shown == [1, debug_frame_readers.FRAMES]
