"""Copies with SFrame survive the tools that rewrite files, and conversions in place keep owner and permissions.

Every kind of linked file is converted, once and twice, rewritten by each tool and by two one after the other, and run.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from lab.convert.stripping import (
    KINDS,
    LIBRARY,
    LINKERS,
    MORE_KINDS,
    PREFIX,
    SOURCE,
    USER,
    Kind,
    compiled,
    needed,
    output,
    rewritten,
)
from sframe_unwind.cli import main
from sframe_unwind.verify import verify
from tests.hanging import HANG

SEQUENCES = (("strip",), ("objcopy",), ("eu-strip",), ("llvm-strip",), ("strip", "llvm-strip"), ("eu-strip", "strip"))


def rewrite(abi: str, tool: str, file: Path) -> None:
    rewritten([needed(tool if tool.startswith(("eu-", "llvm-")) else PREFIX[abi] + tool)], file)


def convert(source: Path, target: Path) -> str:
    assert main(["convert", str(source), "-o", str(target)]) == 0
    return str(target)


@pytest.mark.parametrize("abi", PREFIX)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_programs_run_after_each_tool(abi: str, kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compiled(abi, tmp_path, "program", SOURCE, *kind.flags)
    once, twice, changed = tmp_path / "once", tmp_path / "twice", tmp_path / "changed"
    convert(program, once)
    convert(once, twice)
    assert "unloadable" not in capsys.readouterr().out
    assert twice.stat().st_size == once.stat().st_size  # the second conversion replaces the first
    expected = verify(once)
    assert expected.both > 1
    for converted in (once, twice):
        assert output(abi, converted) == (0, "ok 1\n")
        for sequence in SEQUENCES:
            shutil.copy(converted, changed)
            for tool in sequence:
                rewrite(abi, tool, changed)
            assert output(abi, changed) == (0, "ok 1\n"), sequence
            verdict = verify(changed)
            assert (verdict.both, verdict.disagreements) == (expected.both, ()), sequence


@pytest.mark.parametrize("abi", PREFIX)
def test_libraries_can_be_loaded_after_each_tool(abi: str, tmp_path: Path) -> None:
    library = compiled(abi, tmp_path, "libtwice.so", LIBRARY, "-shared", "-fPIC")
    user = compiled(abi, tmp_path, "user", USER, library)  # the program contains the path of the library
    original = tmp_path / "original"
    shutil.copy(library, original)
    for sequence in ((), *SEQUENCES):
        convert(original, library)
        for tool in sequence:
            rewrite(abi, tool, library)
        assert output(abi, user) == (0, ""), sequence
        assert verify(library).both >= 1


MOVING = (
    ("--set-rpath", ":".join(f"/nonexistent/folder/number/{number}" for number in range(8))),
    ("--set-interpreter", "/lib64/../lib64/../lib64/../lib64/ld-linux-x86-64.so.2"),
    ("--add-needed", "libm.so.6"),
)
"""Options of patchelf that need longer names, for which it moves sections."""
DYNAMIC = [kind for kind in (*KINDS, *LINKERS) if kind.name.endswith("pie")]


@pytest.mark.parametrize("kind", DYNAMIC, ids=lambda kind: kind.name)
def test_programs_run_after_patchelf(kind: Kind, tmp_path: Path) -> None:
    program = compiled("amd64", tmp_path, "program", SOURCE, *kind.flags)
    copy, changed = tmp_path / "copy", tmp_path / "changed"
    convert(program, copy)
    expected = verify(copy)
    patchelf, tried = needed("patchelf"), 0
    for first in MOVING:
        for then in ([needed("strip")], *([patchelf, *other] for other in MOVING if other is not first)):
            commands = [patchelf, *first], then
            if not survives(program, changed, commands):
                continue  # patchelf 0.14 crashes, or breaks the original, too
            tried += 1
            assert survives(copy, changed, commands), commands
            verdict = verify(changed)
            assert (verdict.both, verdict.disagreements, verdict.loading) == (expected.both, (), ()), commands
    assert tried or kind.name == "mold-no-pie"


def survives(source: Path, target: Path, commands: Iterable[list[str]]) -> bool:
    """Rewrite a copy of a program; return whether it still runs."""
    shutil.copy(source, target)
    for command in commands:
        if subprocess.run([*command, target], capture_output=True, timeout=HANG, check=False).returncode:
            return False
    return output("amd64", target) == (0, "ok 1\n")


PLACED = [*KINDS, *MORE_KINDS, *LINKERS]


@pytest.mark.parametrize("kind", PLACED, ids=lambda kind: kind.name)
def test_headers_of_a_copy(kind: Kind, tmp_path: Path) -> None:
    program = compiled("amd64", tmp_path, "program", SOURCE, *kind.flags)
    convert(program, tmp_path / "copy")
    with program.open("rb") as one, (tmp_path / "copy").open("rb") as other:
        before, after = ELFFile(one), ELFFile(other)
        offsets = [section["sh_offset"] for section in after.iter_sections() if section["sh_type"] != "SHT_NOBITS"]
        assert offsets == sorted(offsets)
        for table in (".symtab", ".dynsym"):
            assert homes(before, table) == homes(after, table)
        for name in (".rela.dyn", ".rela.plt", ".dynamic", ".gnu.version"):
            assert referred(before, name) == referred(after, name)
        notes = [[note.data() for note in file.iter_segments("PT_NOTE")] for file in (before, after)]
        assert set(notes[1]) <= set(notes[0])  # a copy may lack the note that is PT_GNU_PROPERTY, too
        start, size = after["e_phoff"], after["e_phnum"] * after["e_phentsize"]
        first = next(part for part in after.iter_segments("PT_LOAD"))
        assert first["p_offset"] <= start
        assert start + size <= first["p_offset"] + first["p_filesz"]
        for own in after.iter_segments("PT_PHDR"):
            assert own["p_vaddr"] == start - first["p_offset"] + first["p_vaddr"]
            assert (own["p_offset"], own["p_filesz"]) == (start, size)


def homes(file: ELFFile, table: str) -> list[tuple[str, str]]:
    """Return the name of each symbol with that of its section."""
    symbols = file.get_section_by_name(table)
    numbers = [] if symbols is None else [(one.name, one["st_shndx"]) for one in symbols.iter_symbols()]
    return [(name, file.get_section(at).name if isinstance(at, int) else at) for name, at in numbers]


def referred(file: ELFFile, name: str) -> tuple[str, str] | None:
    """Return the names of the sections that another one refers to."""
    section = file.get_section_by_name(name)
    if section is None:
        return None
    has_number = section["sh_type"] == "SHT_RELA"
    return file.get_section(section["sh_link"]).name, file.get_section(section["sh_info"] * has_number).name


def test_a_stripped_copy_can_be_converted_again(tmp_path: Path) -> None:
    program, copy = compiled("amd64", tmp_path, "program", SOURCE), tmp_path / "copy"
    convert(program, copy)
    headers = program_headers(copy)
    rewrite("amd64", "strip", copy)
    convert(copy, copy)
    assert output("amd64", copy) == (0, "ok 1\n")
    assert program_headers(copy) == headers


def program_headers(file: Path) -> int:
    shown = subprocess.run(
        ["readelf", "-hW", str(file)], capture_output=True, text=True, check=True, timeout=HANG
    ).stdout
    return int(shown.partition("Number of program headers:")[2].split()[0])


def test_the_build_id_stays_in_the_first_page(tmp_path: Path) -> None:
    """Kernels save that page in core files, and in a library the note is the first part that has to move."""
    source = "".join(LIBRARY.replace("twice", f"twice{number}") for number in range(20))
    library = compiled("amd64", tmp_path, "lib.so", source, "-shared", "-fPIC", "-fcf-protection=none", "-nostdlib")
    before = notes(library)
    copy = tmp_path / "copy"
    convert(library, copy)
    assert notes(copy) == before != ""
    table = subprocess.run(
        ["readelf", "-SW", str(copy)], capture_output=True, text=True, check=True, timeout=HANG
    ).stdout
    (line,) = (line for line in table.splitlines() if ".note.gnu.build-id" in line)
    assert int(line.partition("NOTE")[2].split()[0], 16) < 0x1000


def notes(file: Path) -> str:
    shown = subprocess.run(
        ["readelf", "-nW", str(file)], capture_output=True, text=True, check=True, timeout=HANG
    ).stdout
    return next((line.strip() for line in shown.splitlines() if "Build ID" in line), "")


def test_in_place_a_file_keeps_owner_permissions_and_attributes(tmp_path: Path) -> None:
    program = compiled("amd64", tmp_path, "program", SOURCE)
    if os.getuid() == 0:
        os.chown(program, 65534, 65534)
    program.chmod(0o6751)
    os.setxattr(program, "user.origin", b"test")
    before = program.stat()
    other = tmp_path / "other"
    convert(program, other)
    assert stat.S_IMODE(other.stat().st_mode) == 0o751
    convert(program, program)
    after = program.stat()
    assert after.st_size != before.st_size
    kept = (before.st_uid, before.st_gid, before.st_mode)
    assert (after.st_uid, after.st_gid, after.st_mode) == kept
    assert os.getxattr(program, "user.origin") == b"test"


def test_a_file_with_several_names_is_refused_in_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, name = compiled("amd64", tmp_path, "program", SOURCE), tmp_path / "name"
    os.link(program, name)
    before = program.read_bytes()
    assert main(["convert", str(program), "-o", str(name)]) == 2
    assert "the file has 2 names (hard links)" in capsys.readouterr().err
    assert program.read_bytes() == before
    convert(program, tmp_path / "other")
