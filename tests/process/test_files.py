"""The places where the files of a core file are found, and messages about missing, damaged or different ones."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from sframe_unwind.elf import parsed
from sframe_unwind.elf.constants import PT_NOTE
from tests.process.command import NOWHERE, Done, backtrace, functions, only_line, unprivileged
from tests.process.programs import Crash, core_of, crash_of
from tests.samples.build import build

NT_FILE = 0x46494C45
OWN = ["clobber", "aligned", *["unknown"] * 3, "main"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Crash:
    """Build a program with debugging information, and its core file."""
    return crash_of("odd.c", "*clobber+3", tmp_path_factory.mktemp("crash"))


@pytest.fixture
def crash(original: Crash, tmp_path: Path) -> Iterator[Crash]:
    """Yield the same, but the program is not at its path."""
    moved = tmp_path / "moved"
    shutil.copy(original.program, moved)
    away = original.program.rename(original.program.with_suffix(".away"))
    try:
        yield Crash(moved, original.core, original.build_id)
    finally:
        away.rename(original.program)


def names(*arguments: str | Path) -> list[str]:
    """Return the functions that the command finds; it must report no error."""
    done = backtrace(*arguments, "--json")
    assert (done.status, done.errors) == (0, "")
    return functions(next(iter(done.threads.values())))[: len(OWN)]


def test_without_the_executable(crash: Crash, original: Crash) -> None:
    done = backtrace("--core", crash.core, *NOWHERE)
    assert done.status == 2
    expected = f"{crash.core}: executable not found: {original.program} (--exe FILE names it)"
    assert only_line(done.errors) == f"sframe-unwind: {expected}"
    assert done.output.startswith("Thread ")


def test_executable_that_is_named(crash: Crash) -> None:
    assert names("--core", crash.core, "--exe", crash.program, *NOWHERE) == OWN


def test_executable_below_a_sysroot(crash: Crash, original: Crash, tmp_path: Path) -> None:
    place = tmp_path / "root" / str(original.program).lstrip("/")
    place.parent.mkdir(parents=True)
    shutil.copy(crash.program, place)
    assert names("--core", crash.core, "--sysroot", tmp_path / "root", *NOWHERE) == OWN


def test_executable_by_build_id(crash: Crash, tmp_path: Path) -> None:
    place = by_build_id(tmp_path, crash.build_id)
    shutil.copy(crash.program, place)
    assert names("--core", crash.core, "--debug-dir", tmp_path / "debug") == OWN


def test_names_from_a_debug_file(crash: Crash, tmp_path: Path) -> None:
    debug_file = by_build_id(tmp_path, crash.build_id).with_suffix(".debug")
    subprocess.run(["objcopy", "--only-keep-debug", str(crash.program), str(debug_file)], check=True)
    subprocess.run(["strip", str(crash.program)], check=True)
    assert names("--core", crash.core, "--exe", crash.program, *NOWHERE) == ["??"] * len(OWN)
    assert names("--core", crash.core, "--exe", crash.program, "--debug-dir", tmp_path / "debug") == OWN


def by_build_id(folder: Path, build_id: str) -> Path:
    """Return the path where a file is searched by its build ID."""
    place = folder / "debug" / ".build-id" / build_id[:2] / build_id[2:]
    place.parent.mkdir(parents=True)
    return place


def test_another_executable_is_not_used(crash: Crash) -> None:
    other = build("leaf")
    done = backtrace("--core", crash.core, "--exe", other, *NOWHERE)
    assert f"{other}: build ID " in done.errors
    assert f", but {crash.build_id} was loaded: this file is not used" in done.errors
    assert done.status == 2
    without = backtrace("--core", crash.core, *NOWHERE)
    assert done.output == without.output


def test_the_right_executable_is_found_though_another_is_named(original: Crash) -> None:
    """The message is that the other file is not used, not that no file was found."""
    other = build("leaf")
    done = backtrace("--core", original.core, "--exe", other, *NOWHERE)
    assert only_line(done.errors).endswith(f", but {original.build_id} was loaded: this file is not used")
    assert done.status == 2
    assert done.output == backtrace("--core", original.core, *NOWHERE).output
    assert "clobber+0x3" in done.output


def test_library_of_another_build_is_passed_over(original: Crash, tmp_path: Path) -> None:
    """A program that ran in another distribution: its C library used to be unwound with this one's CFI."""
    library = next(path for path in loaded(original) if "libc.so" in path)
    place = tmp_path / "root" / library.lstrip("/")
    place.parent.mkdir(parents=True)
    shutil.copy(build("leaf"), place)
    nowhere = ("--debug-dir", tmp_path)
    done = backtrace("--core", original.core, "--exe", original.program, "--sysroot", tmp_path / "root", *nowhere)
    assert f"{place}: build ID " not in done.errors  # the right one is at its path
    assert done.status == 0


def loaded(crash: Crash) -> list[str]:
    """Return the paths of the modules in the stacks of a core file."""
    done = backtrace("--core", crash.core, "--exe", crash.program, "--json", *NOWHERE)
    return [module["path"] for module in json.loads(done.output)["modules"]]


def test_json_can_be_symbolized_elsewhere(crash: Crash) -> None:
    done = backtrace("--core", crash.core, "--exe", crash.program, "--json", *NOWHERE)
    answer = json.loads(done.output)
    (thread,) = answer["threads"]
    assert thread["name"] == "odd"
    assert thread["signal"] is None or thread["signal"].startswith("SIG")
    modules = {module["path"]: module for module in answer["modules"]}
    assert crash.build_id in {module["build_id"] for module in modules.values()}
    for frame in thread["frames"]:
        module = modules[frame["module"]]
        assert frame["address"] + module["bias"] == frame["pc"]
        assert frame["function"] is None or frame["offset"] >= 0


COMPRESSIONS = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_compressed_core_file(original: Crash, ending: str, tmp_path: Path) -> None:
    """systemd compresses core files."""
    core = tmp_path / f"core.{ending}"
    data = COMPRESSIONS[ending](original.core.read_bytes())
    core.write_bytes(data)
    expected = backtrace("--core", original.core, "--json", *NOWHERE)
    assert backtrace("--core", core, "--json", *NOWHERE) == expected
    core.write_bytes(data[: len(data) // 2])
    cut = backtrace("--core", core, *NOWHERE)
    assert cut.status == 2
    missing = "cannot be decompressed: it ends too early" if ending == "bz2" else "truncated after "
    assert only_line(cut.errors).startswith(f"sframe-unwind: {core}: {missing}")
    core.write_bytes(data[:100] + bytes(1000) + data[1100:])
    assert (done := backtrace("--core", core, *NOWHERE)).status == 2
    assert only_line(done.errors).startswith(f"sframe-unwind: {core}: cannot be decompressed: ")


def test_compressed_file_that_is_no_core_file(tmp_path: Path) -> None:
    core = tmp_path / "core.gz"
    core.write_bytes(gzip.compress(Path("/bin/true").read_bytes()))
    done = backtrace("--core", core)
    assert (done.status, done.errors) == (2, f"sframe-unwind: {core}: not a core file: its type is ET_DYN\n")


def test_without_the_list_of_mapped_files(original: Crash, tmp_path: Path) -> None:
    """The kernel leaves the note out if a process has 65,536 mappings or more: it does not fit."""
    core = tmp_path / "core"
    core.write_bytes(without_note(original.core.read_bytes(), NT_FILE))
    expected = backtrace("--core", original.core, "--json", *NOWHERE)
    found = backtrace("--core", core, "--json", *NOWHERE)
    assert (found.status, found.errors) == (0, "")
    assert without_paths(found) == without_paths(
        expected
    )  # the dynamic linker's list has other paths of the same files
    assert '"end": "outermost frame"' in found.output


def without_paths(done: Done) -> list[list[dict[str, Any]]]:
    """Return the frames of each thread without the paths of their modules."""
    return [[{**frame, "module": None} for frame in frames] for frames in done.threads.values()]


def without_note(core: bytes, kind: int) -> bytes:
    """Return a core file in which the notes of one kind have another one, that nobody knows."""
    with parsed(io.BytesIO(core), "core") as binary:
        (part,) = (segment for segment in binary.segments if segment.type == PT_NOTE)
    changed, at = bytearray(core), part.offset
    while at < part.offset + part.file_size:
        name, size, found = struct.unpack_from("<III", core, at)
        if found == kind:
            struct.pack_into("<I", changed, at + 8, 0x12345678)
        at += 12 + (name + 3 & ~3) + (size + 3 & ~3)
    assert changed != core
    return bytes(changed)


def test_truncated_in_the_notes(original: Crash, tmp_path: Path) -> None:
    content, cut = original.core.read_bytes(), tmp_path / "cut"
    for size in (1000, 2000, 3000):
        cut.write_bytes(content[:size])
        done = backtrace("--core", cut, *NOWHERE)
        assert (done.status, done.output) == (2, "")
        assert f"truncated after {size:,} " in only_line(done.errors)


def test_executable_for_another_machine(original: Crash) -> None:
    other = build("free_walk", abi="aarch64_be")
    done = backtrace("--core", original.core, "--exe", other)
    assert (done.status, done.output) == (2, "")
    expected = f"{other}: for EM_AARCH64, big-endian; expected EM_X86_64, little-endian"
    assert only_line(done.errors) == f"sframe-unwind: {expected}"


def test_truncated_anywhere(original: Crash, tmp_path: Path) -> None:
    content = original.core.read_bytes()
    cut = tmp_path / "cut"
    for part in range(1, 20):
        cut.write_bytes(content[: len(content) * part // 20])
        done = backtrace("--core", cut, *NOWHERE)
        assert done.status == 2
        assert "truncated after" in only_line(done.errors)


def test_memory_is_missing(original: Crash, tmp_path: Path) -> None:
    """A core file as the kernel leaves it if the disk is full: the notes come first, the stack last."""
    content = bytearray(original.core.read_bytes())
    segments, count = int.from_bytes(content[32:40], "little"), int.from_bytes(content[56:58], "little")
    for number in range(1, count):
        at = segments + 56 * number + 8
        content[at : at + 8] = len(content).to_bytes(8, "little")
    cut = tmp_path / "cut"
    cut.write_bytes(content)
    done = backtrace("--core", cut, *NOWHERE)
    assert done.status == 2
    assert "truncated after" in only_line(done.errors)
    lines = done.output.splitlines()
    assert lines[1].split()[2].startswith("clobber+0x3")
    assert lines[-1].startswith("end: unreadable memory: cannot read 8 bytes of memory at 0x7ff")


def test_any_damage_is_a_line_and_no_traceback(original: Crash, tmp_path: Path) -> None:
    content = original.core.read_bytes()
    notes = next(n for n in range(0, len(content) - 4, 4) if content[n : n + 12] == b"\5\0\0\0P\1\0\0\1\0\0\0")
    damaged = tmp_path / "damaged"
    for at in (*range(0, 64, 4), *range(64, 64 + 56 * 2, 7), *range(notes, notes + 1200, 101)):
        damaged.write_bytes(content[:at] + b"\xff\xff" + content[at + 2 :])
        done = backtrace("--core", damaged, *NOWHERE)
        assert done.status in (0, 2)
        assert done.output or done.errors


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("missing", "No such file or directory"),
        (".", "Is a directory"),
        ("text", "not a readable ELF file"),
        ("empty", "the file is empty"),
        ("program", "not a core file: its type is ET_DYN"),
    ],
)
def test_no_core_file(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "empty").touch()
    shutil.copy(build("leaf"), tmp_path / "program")
    done = backtrace("--core", tmp_path / name)
    assert (done.status, done.output) == (2, "")
    assert what in only_line(done.errors)


def test_core_file_that_may_not_be_read(original: Crash, tmp_path: Path) -> None:
    copy = tmp_path / "core"
    shutil.copy(original.core, copy)
    copy.chmod(0)
    done = unprivileged("--core", copy)
    assert done.status == 2
    assert "Permission denied" in only_line(done.errors)


def test_core_file_from_elsewhere(tmp_path: Path) -> None:
    """One library is not there, and another one has been replaced: one line says how to get them."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    sources = {
        "second": "int second(int (*stop)(int)) { return stop(1) + 1; }",
        "first": "int second(int (*)(int)); int first(int (*stop)(int)) { return second(stop) + 1; }",
        "program": "int first(int (*)(int)); int stop(int one) { return one; } int main(void) { return first(stop); }",
    }
    for name, text in sources.items():
        (folder / f"{name}.c").write_text(f"{text}\n", encoding="ascii")
    shared = ["gcc", "-g", "-fPIC", "-shared", "-Wl,--build-id"]
    libraries = [folder / "libsecond.so", folder / "libfirst.so"]
    second, first = libraries
    subprocess.run([*shared, str(folder / "second.c"), "-o", str(second)], check=True)
    subprocess.run([*shared, str(folder / "first.c"), str(second), "-o", str(first)], check=True)
    link = [str(folder / "program.c"), str(first), str(second), f"-Wl,-rpath,{folder}"]
    subprocess.run(["gcc", "-g", *link, "-o", str(folder / "program")], check=True)
    core, _ = core_of(folder / "program", "stop", tmp_path / "core")
    whole = backtrace("--core", core, "--json", *NOWHERE)
    assert (whole.status, whole.errors) == (0, "")
    (kept := tmp_path / "root" / str(folder).lstrip("/")).mkdir(parents=True)
    for library in libraries:
        shutil.move(library, kept)
    shutil.copy(build("leaf"), first)
    done = backtrace("--core", core, "--json", *NOWHERE)
    assert done.status == 2
    expected = (
        f"sframe-unwind: {core}: not found, or not the files that were loaded: libfirst.so, libsecond.so;"
        " --sysroot FOLDER, --debug-dir FOLDER or --debuginfod gives them"
    )
    assert only_line(done.errors) == expected
    first.unlink()
    below = backtrace("--core", core, "--json", "--sysroot", tmp_path / "root", *NOWHERE)
    assert (below.status, below.errors) == (0, "")
    assert list(map(functions, below.threads.values())) == list(map(functions, whole.threads.values()))
