"""Stacks by the machine code of programs without unwind data, also without symbols: they equal GDB's by the CFI."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from sframe_unwind.cli import main
from sframe_unwind.errors import MissingExtraError
from sframe_unwind.perf.ending import Ending
from tests.gdb.programs import built
from tests.perf.emulated import Stepped, Steps, stepped
from tests.perf.unwinding import unwound
from tests.samples.catalogue import ABIS
from tests.undescribed import undescribed

METHODS = ("code", "sframe+code")
HOSTED = Steps("stepper", "sample_stop", every=9, most=60)
FREE = Steps("free_walk", "free_main", every=7, most=40)
"""One frame is larger than the copy of the stack."""


@functools.cache
def steps_of(abi: str, variant: str) -> tuple[Steps, Stepped]:
    steps = HOSTED if ABIS[abi].has_libc else FREE
    return steps, stepped(steps, abi, variant)


@pytest.mark.parametrize("with_symbols", [True, False])
@pytest.mark.parametrize("variant", ["O0", "O2"])
@pytest.mark.parametrize("abi", ABIS)
def test_stacks_are_those_of_gdb_with_cfi(abi: str, variant: str, with_symbols: bool, tmp_path: Path) -> None:
    steps, made = steps_of(abi, variant)
    program = built(steps.sample, abi, 3, variant)
    undescribed(program, abi, tmp_path / "sysroot" / str(program).lstrip("/"), with_symbols)
    path = tmp_path / "perf.data"
    path.write_bytes(made.recording)
    reached = 0
    found = unwound(path, convert=True, methods=METHODS, sysroot=str(tmp_path / "sysroot"))
    assert len(found) == len(made.stacks) >= 10
    for one, expected in zip(found, made.stacks):
        for method in METHODS:
            stack = one.by_method[method].stack
            if stack.ending is Ending.REACHED:
                assert stack.pcs == expected
                reached += 1
            else:
                assert stack.pcs == expected[: len(stack.pcs)]
                reached += stack.ending is Ending.CUT
    # Where the caller is, is not known after a room of variable size is made (AArch64, -O0), nor in the cases of a
    # switch by an index that is an address (s390x).
    assert reached >= 0.8 * len(METHODS) * len(found)


def test_without_the_extra(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtraError("pyvex")

    monkeypatch.setattr("sframe_unwind.code.decode.lifting.check_installed", missing)
    path = tmp_path / "perf.data"
    path.write_bytes(steps_of("amd64", "O2")[1].recording)
    assert main(["perf", str(path), "--method", "sframe+code"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "this needs the package pyvex" in line
