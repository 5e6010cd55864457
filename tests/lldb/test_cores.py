"""Core files of every kind, most of which lack pages that are in the program's file."""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.expectations import STRIPPED_DEPTH
from tests.gdb import driver
from tests.lldb.driver import IMPORT, CrashError, batch, stacks
from tests.missing import core_files_needed
from tests.samples.build import build

STYLES = ("full", "stack", "modified-memory")
FILTERS = (0x33, 0x23, 0x7F)
"""Filters: the kernel's default; without the pages of ELF headers, which have the build ID; everything."""

_ALLOW = "python import glob, os, resource; resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)"
_FILTER = "python open(f'/proc/{gdb.selected_inferior().pid}/coredump_filter', 'w').write('%#x')"
_RENAME = "python [os.rename(path, 'with-%#x') for path in glob.glob('core*')]"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Yield a folder with a short name: LLDB 23.1 crashes on many core files of programs with paths of 83 letters.

    It also does so without the plugin, for core files of any writer.
    """
    with tempfile.TemporaryDirectory(prefix="c", dir="/tmp") as folder:
        yield Path(folder)


def program(folder: Path, variant: str = "O2") -> Path:
    """Build a stripped program with only SFrame, with a short name, which LLDB compares with that in the core file."""
    folder.mkdir()
    return Path(shutil.copy(build("sframe_only_stripped", variant=variant), folder / "only"))


def with_cores(lldb: str, *arguments: str) -> str:
    """Return LLDB's output, after another attempt if it crashes while it loads a core file.

    LLDB 23.1 does so also without a plugin, in ``Module::SetLoadAddress`` called by ``Process::LoadCore``.
    """
    for _ in range(4):
        try:
            return batch(lldb, *arguments)
        except CrashError as error:
            if "Process::LoadCore" not in str(error):
                raise
    return batch(lldb, *arguments)


def backtraces_of(lldb: str, executable: Path, *cores: Path) -> list[list[str]]:
    """Return the stack in each core file."""
    arguments = [part for core in cores for part in ("-o", f'target create "{executable}" --core "{core}"', "-o", "bt")]
    return stacks(with_cores(lldb, "-o", IMPORT, *arguments))


def cores_by_kernel(executable: Path, folder: Path) -> list[Path]:
    """Write core files of the program at its stop, one for each filter; GDB runs it at the same addresses each time."""
    found = driver.find("pypi")
    assert found is not None
    commands = [f"cd {folder}", _ALLOW, "break sample_stop"]
    for bits in FILTERS:
        commands += ["run > /dev/null", _FILTER % bits, "signal SIGABRT", _RENAME % bits]
    driver.batch(found, *commands, executable=executable)
    cores = [folder / f"with-{bits:#x}" for bits in FILTERS]
    core_files_needed()
    assert all(core.exists() for core in cores)
    return cores


def test_what_lldb_saves(lldb: str, tmp_path: Path) -> None:
    executable = program(tmp_path / "right")
    cores = [tmp_path / style for style in STYLES]
    saved = [part for core in cores for part in ("-o", f'process save-core --style {core.name} "{core}"')]
    start = ("-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null", "-o", "bt")
    (live,) = stacks(batch(lldb, "-O", IMPORT, *start, *saved, str(executable)).split("(lldb) process save-core")[0])
    assert len(live) >= STRIPPED_DEPTH
    assert backtraces_of(lldb, executable, *cores) == [live] * len(cores)


@pytest.mark.usefixtures("fixed_addresses")
def test_what_the_kernel_saves(lldb: str, tmp_path: Path) -> None:
    executable = program(tmp_path / "right")
    cores = cores_by_kernel(executable, tmp_path)
    *filtered, whole = backtraces_of(lldb, executable, *cores)
    assert len(whole) >= STRIPPED_DEPTH
    assert filtered == [whole] * len(filtered)


def test_file_of_another_build(lldb: str, tmp_path: Path) -> None:
    """A file other than the loaded one has another build ID than the memory, and is not read."""
    executable = program(tmp_path / "right")
    default, *_ = cores_by_kernel(executable, tmp_path)
    other = program(tmp_path / "other", "O0")
    arguments = ("-o", f'target create "{other}" --core "{default}"', "-o", "sframe status", "-o", "bt")
    said = with_cores(lldb, "-o", IMPORT, *arguments)
    if "not used" in said:
        assert f"{other}: not used: cannot read" in said
        assert len(stacks(said)[0]) < STRIPPED_DEPTH
    else:  # LLDB 23 looks for the right file by itself, and finds it
        assert stacks(said) == backtraces_of(lldb, executable, default)


def test_file_that_is_missing(lldb: str, tmp_path: Path) -> None:
    executable, core = program(tmp_path / "right"), tmp_path / "core"
    start = ("-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null")
    batch(lldb, *start, "-o", f'process save-core --style stack "{core}"', str(executable))
    said = [with_cores(lldb, "-o", IMPORT, "-o", f'target create --core "{core}"', "-o", "sframe status")]
    executable.rename(tmp_path / "elsewhere")
    said.append(with_cores(lldb, "-o", IMPORT, "-o", f'target create --core "{core}"', "-o", "sframe status"))
    missing = "LLDB does not find the files of these, so their SFrame is not known: only"
    assert [missing in status for status in said] == [False, True]


@pytest.mark.usefixtures("fixed_addresses")
def test_file_without_section_headers(lldb: str, tmp_path: Path) -> None:
    """LLDB lists no section of such a file; its SFrame is found by the program headers, also in a core file."""
    executable = program(tmp_path / "right")
    start = ("-o", "breakpoint set -n sample_stop", "-o", "process launch -o /dev/null", "-o", "bt")
    (expected,) = stacks(batch(lldb, "-O", IMPORT, *start, str(executable)))
    assert len(expected) >= STRIPPED_DEPTH

    without = Path(shutil.copy(executable, tmp_path))
    _remove_section_headers(without)
    core = tmp_path / "core"
    start = ("-o", "process launch -s -o /dev/null", "-o", f"breakpoint set -a {expected[0]}", "-o", "continue")
    save = ("-o", "bt", "-o", f'process save-core --style stack "{core}"')
    (live,) = stacks(batch(lldb, "-O", IMPORT, *start, *save, str(without)).split("(lldb) process save-core")[0])
    assert live == expected
    assert backtraces_of(lldb, without, core) == [expected]


def _remove_section_headers(file: Path) -> None:
    contents = bytearray(file.read_bytes())
    struct.pack_into("<Q", contents, 40, 0)  # e_shoff
    struct.pack_into("<HH", contents, 60, 0, 0)  # e_shnum, e_shstrndx
    file.write_bytes(contents)
