"""Stacks that eu-stack or GDB show whole: on several stacks, with JIT images by CFI, of leaf functions without data."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.missing import absent
from tests.process.command import NOWHERE, backtrace, functions, without_code_extra
from tests.process.programs import FOLDER, SECONDS, compiled, core_of, running
from tests.runtime_code.programs import FOLDER as RUN_TIME
from tests.runtime_code.programs import jit

_FRAME = re.compile(r"^#\d+ +0x([0-9a-f]+)", re.MULTILINE)


def by_elfutils(process: int) -> dict[str, list[int]]:
    """Return the pcs of the frames of each thread, as eu-stack shows them; it shows no signal frame as such."""
    tool = shutil.which("eu-stack") or absent("eu-stack (elfutils) is not installed: its stacks stay uncompared")
    shown = subprocess.run(
        [tool, "-p", str(process)], capture_output=True, text=True, timeout=SECONDS, check=False
    ).stdout
    threads = re.split(r"^TID (\d+):$", shown, flags=re.MULTILINE)[1:]
    return {one: [int(pc, 16) for pc in _FRAME.findall(frames)] for one, frames in zip(threads[::2], threads[1::2])}


@pytest.mark.parametrize(
    ("source", "flags", "innermost"),
    [
        ("fiber.c", (), ["body", "run_on", "starts", "thread"]),
        ("split.c", ("-fsplit-stack", "-O1"), ["deep", *["__morestack", "deep"] * 4, "__morestack", "thread"]),
    ],
)
def test_stack_that_continues_on_one_at_lower_addresses(
    source: str, flags: tuple[str, ...], innermost: list[str], tmp_path: Path
) -> None:
    with running(compiled(source, tmp_path, *flags)) as process:
        done = backtrace("--pid", str(process), "--json", *NOWHERE)
        peer = by_elfutils(process)
    assert (done.status, done.errors) == (0, "")
    pcs = {thread: [frame["pc"] for frame in frames if not frame["inlined"]] for thread, frames in done.threads.items()}
    assert pcs == peer
    found = functions(done.threads[max(done.threads, key=int)])
    assert contains(found, innermost), found
    assert done.output.count('"end": "outermost frame"') == 2


def contains(found: list[str], part: list[str]) -> bool:
    """Return whether a list has a part in this order, without a gap."""
    return any(found[at : at + len(part)] == part for at in range(len(found)))


@pytest.mark.parametrize("unwinder", ["code", "guess"])
@pytest.mark.parametrize("flag", ["-fomit-frame-pointer", "-fno-omit-frame-pointer"])
@pytest.mark.parametrize(
    ("place", "innermost"),
    [("*leaf", ["leaf", "caller"]), ("*leaf+3", ["leaf", "caller"]), ("*middle", ["middle", "caller"])],
)
def test_leaf_function_without_data(
    place: str, innermost: list[str], flag: str, unwinder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if unwinder == "guess":
        without_code_extra(monkeypatch)
    program = compiled("leaf.c", tmp_path, "-O2", flag, str(FOLDER / "leaf.s"))
    core, by_gdb = core_of(program, place, tmp_path / "core")
    (frames,) = backtrace("--core", core, "--json", *NOWHERE).threads.values()
    assert frames[0]["unwinder"] == unwinder
    assert functions(frames)[:4] == [*innermost, "outer", "main"]
    assert [frame["pc"] for frame in frames[:3]] == pcs_of(by_gdb)[:3]


@pytest.mark.parametrize("unwinder", ["code", "guess"])
@pytest.mark.parametrize("place", ["*middle+7", "*middle+12"])
def test_function_without_data_that_is_no_leaf(
    place: str, unwinder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The word at SP does not follow a call; the code or the frame pointer leads to the caller."""
    if unwinder == "guess":
        without_code_extra(monkeypatch)
    program = compiled("leaf.c", tmp_path, "-O2", "-fno-omit-frame-pointer", str(FOLDER / "leaf.s"))
    core, _ = core_of(program, place, tmp_path / "core")
    (frames,) = backtrace("--core", core, "--json", *NOWHERE).threads.values()
    assert frames[0]["unwinder"] == unwinder
    assert functions(frames)[:4] == ["middle", "caller", "outer", "main"]


def test_jit_images_with_cfi_alone(tmp_path: Path) -> None:
    """Their relocations are not applied in the memory of the process: LLVM registers such images."""
    loader, _, _ = jit("amd64")
    images = []
    for room in (4, 40):
        images.append(str(tmp_path / f"{room}.o"))
        command = ["gcc", "-O2", "-fomit-frame-pointer", "-fno-stack-protector", f"-DROOM={room}", "-c"]
        subprocess.run([*command, str(RUN_TIME / "jitted.c"), "-o", images[-1]], check=True, timeout=SECONDS)
    core, by_gdb = core_of(loader, "sample_stop", tmp_path / "core", *images)
    done = backtrace("--core", core, "--json", *NOWHERE)
    assert (done.status, done.errors) == (0, "")
    (frames,) = done.threads.values()
    assert functions(frames)[:4] == ["sample_stop", "jitted", "sample_call", "main"]
    assert frames[1]["unwinder"] == "dwarf"
    assert [frame["pc"] for frame in frames[:4]] == pcs_of(by_gdb)[:4]


def pcs_of(threads: dict[str, list[dict[str, Any]]]) -> list[int]:
    """Return the pcs of the frames of GDB's only thread."""
    (frames,) = threads.values()
    return [frame["pc"] for frame in frames if not frame["inlined"]]
