"""Processes in a mount namespace of their own, as in containers, whose files have no build IDs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.missing import mount_namespaces_needed
from tests.process.command import NOWHERE, backtrace
from tests.process.programs import compiled, running

LIBRARY = "libdeep.so"
FLAGS = ("-g", "-Wl,--build-id=none")
Places = list[tuple[str, int]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program, its library, the debug file of the library, and another library of that name."""
    mount_namespaces_needed()
    folder: Path = tmp_path_factory.mktemp("built")
    (folder / "other").mkdir()
    (folder / "shown").mkdir()
    shared = (*FLAGS, "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}")
    compiled("deep.c", folder, *shared).rename(folder / LIBRARY)
    compiled("many.c", folder, *shared).rename(folder / "other" / LIBRARY)
    linked = ("-Wl,--no-as-needed", str(folder / LIBRARY), f"-Wl,-rpath,{folder / 'shown'}")
    compiled("calls_deep.c", folder, *FLAGS, *linked)
    for command in (
        ["objcopy", "--only-keep-debug", LIBRARY, "libdeep.debug"],
        ["strip", LIBRARY],
        ["objcopy", "--add-gnu-debuglink=libdeep.debug", LIBRARY],
    ):
        subprocess.run(command, cwd=folder, check=True)
    return folder


def places(process: int) -> Places:
    """Return function and line of each frame of the program and its library."""
    done = backtrace("--pid", str(process), "--json", *NOWHERE)
    assert (done.status, done.errors) == (0, "")
    frames = done.threads[str(process)]
    assert any(str(frame["module"]).endswith(f"/shown/{LIBRARY}") for frame in frames)
    names = [frame["function"] for frame in frames]
    own = frames[names.index("inner") : names.index("main") + 1]
    return [(frame["function"], frame["line"]) for frame in own]


@pytest.fixture(scope="module")
def expected(built: Path) -> Places:
    """Return the places of the same program without a namespace."""
    copied_to(built / "shown", built)
    with running(built / "calls_deep") as process:
        found = places(process)
    for path in (built / "shown").iterdir():
        path.unlink()
    assert [function for function, _ in found] == ["inner", "outer", "main"]
    assert all(line for _, line in found)
    return found


def copied_to(folder: Path, source: Path) -> None:
    """Copy the library and its debug file."""
    for name in (LIBRARY, "libdeep.debug"):
        shutil.copy(source / name, folder)


def in_namespace(built: Path) -> tuple[str, ...]:
    """Return the command that starts the program where only it sees its library."""
    made = f"mount -t tmpfs tmpfs {built / 'shown'} && cp {built}/libdeep.* {built / 'shown'}"
    return "--mount", "sh", "-c", f"{made} && exec {built / 'calls_deep'}"


def test_other_files_are_at_the_same_paths_here(built: Path, expected: Places) -> None:
    shutil.copy(built / "other" / LIBRARY, built / "shown")
    with running(Path("unshare"), *in_namespace(built)) as process:
        assert places(process) == expected


def test_another_file_hides_the_library(built: Path, expected: Places) -> None:
    with running(Path("unshare"), *in_namespace(built)) as process:
        hide = ["mount", "--bind", str(built / "other" / LIBRARY), str(built / "shown" / LIBRARY)]
        subprocess.run(["nsenter", f"--mount=/proc/{process}/ns/mnt", *hide], check=True)
        assert places(process) == expected
