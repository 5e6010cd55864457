"""Frames without SFrame data: by CFI that needs other registers, and by frame pointers without any unwind data."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.abis.debuggers import sysroot
from tests.missing import absent, core_files_needed
from tests.process.command import NOWHERE, backtrace, functions, without_code_extra
from tests.process.programs import FOLDER, SECONDS, compiled, core_of
from tests.samples.build import run_command
from tests.samples.catalogue import ABIS, WITH_LIBC

NO_SFRAME = "-Wa,--gsframe=no"
NO_EH_FRAME = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
UNWINDERS = {
    "sframe": (),
    "dwarf": (NO_SFRAME,),
    "dwarf of the file": (NO_SFRAME, *NO_EH_FRAME),
    "code": (NO_SFRAME, *NO_EH_FRAME, "-g0", "-fomit-frame-pointer"),
    "guess": (NO_SFRAME, *NO_EH_FRAME, "-g0", "-fno-omit-frame-pointer"),
}
"""The unwinders of the functions in C, with the compiler's options; with -g there is a .debug_frame."""


@pytest.mark.parametrize("name", UNWINDERS)
def test_stack_is_that_of_gdb(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "guess":
        without_code_extra(monkeypatch)
    program = compiled("odd.c", tmp_path, *UNWINDERS[name])
    core, expected = core_of(program, "*clobber+3", tmp_path / "core")
    done = backtrace("--core", core, "--json", *NOWHERE)
    (frames,) = done.threads.values()
    (native,) = expected.values()
    # Beyond main, GDB's guesses are worse; without a frame pointer, its guesses already fail before.
    known = {"guess": 6, "code": 2}.get(name)
    assert [frame["pc"] for frame in frames[:known]] == [frame["pc"] for frame in native[:known]]
    assert functions(frames)[:6] == ["clobber", "aligned", *["unknown"] * 3, "main"]
    assert frames[1]["unwinder"] == "dwarf"  # SFrame has the rule too, but only for frames whose registers are live
    assert {frame["unwinder"] for frame in frames[2:6]} == {name.partition(" ")[0]}
    shown = backtrace("--core", core, *NOWHERE).output.splitlines()[4]
    assert shown.endswith(f"  {name.partition(' ')[0]}")


@pytest.mark.parametrize("abi", WITH_LIBC)
def test_call_of_a_function_that_is_not_there(abi: str, tmp_path: Path) -> None:
    program = tmp_path / "null"
    compiler = shutil.which(ABIS[abi].compiler) or absent(f"{ABIS[abi].compiler} is not installed")
    subprocess.run([compiler, "-O2", str(FOLDER / "null.c"), "-o", str(program)], check=True, timeout=SECONDS)
    crash(run_command(program, abi), tmp_path)
    cores = list(tmp_path.glob("qemu_*.core" if ABIS[abi].emulator else "core*"))
    if not ABIS[abi].emulator:
        core_files_needed()
    arguments = ["--sysroot", sysroot(abi)] if sysroot(abi) else []
    done = backtrace("--core", cores[0], "--json", *arguments, *NOWHERE)
    assert (done.status, done.errors) == (0, "")
    (frames,) = done.threads.values()
    assert functions(frames)[:3] == ["??", "call", "main"]
    assert (frames[0]["pc"], frames[0]["unwinder"]) == (0, "guess")
    assert functions(frames)[-1] == "_start"


def crash(command: list[str], folder: Path) -> None:
    """Run a program that dies, and whose core file is written to a folder."""

    def allow_core() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (most, most))

    done = subprocess.run(
        command, cwd=folder, preexec_fn=allow_core, stderr=subprocess.PIPE, timeout=SECONDS, check=False
    )
    assert done.returncode == -signal.SIGSEGV, done.stderr
