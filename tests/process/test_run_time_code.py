"""Stacks with run-time code in core files.  GDB alone does not unwind beyond that code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.abis.debuggers import newest, sysroot
from tests.gdb.driver import call
from tests.pairing import paired
from tests.process.command import EMULATOR, functions
from tests.process.stops import read
from tests.runtime_code.programs import EVERYWHERE, LIBUNWIND, OWN, generated, jit, program

STOP = {"hits": 1, "libraries": ""}
OUTER = ["sample_call", "call", "main"]


@pytest.mark.parametrize(("abi", "registry"), [("amd64", LIBUNWIND), ("amd64", OWN), ("aarch64", OWN), ("s390x", OWN)])
def test_registered_with_libunwind(abi: str, registry: str, tmp_path: Path) -> None:
    executable = generated(abi, registry)
    programs = [{**program(abi, executable, name), **STOP} for name in EVERYWHERE]
    for name, answer in paired(EVERYWHERE, collected(abi, programs, tmp_path)):
        for kind, core in answer.items():
            done = read(core["file"], executable, abi, kind)
            assert (done.status, done.errors) == (0, ""), name
            (frames,) = done.threads.values()
            assert functions(frames)[:5] == ["sample_stop", name, *OUTER], done.output
            native = [frame["name"] for frame in next(iter(core["threads"].values()))]
            assert native[2:5] != OUTER


@pytest.mark.parametrize("abi", ["amd64", "aarch64", "s390x"])
def test_jit_images(abi: str, tmp_path: Path) -> None:
    loader, first, second = jit(abi)
    programs = [{**program(abi, loader, str(first), str(second)), **STOP}]
    (answer,) = collected(abi, programs, tmp_path)
    for kind, core in answer.items():
        done = read(core["file"], loader, abi, kind)
        assert (done.status, done.errors) == (0, "")
        (frames,) = done.threads.values()
        assert functions(frames)[:4] == ["sample_stop", "jitted", "sample_call", "main"], done.output


def collected(abi: str, programs: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Return the core files of programs, each with GDB's stacks."""
    answers: list[dict[str, Any]] = call(
        newest(abi),
        "tests.process.inside.cores.collect",
        programs=programs,
        sysroot=sysroot(abi),
        folder=str(folder),
    )
    assert all(answers)
    assert abi == "amd64" or all(list(answer) == [EMULATOR] for answer in answers)
    return answers
