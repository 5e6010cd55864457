"""Assembles sources without CFI, annotates them, and assembles the result."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.cfi.rules import CfiRules, Said
from sframe_unwind.cli import main
from sframe_unwind.elf import opened
from tests.code.assembled import BINUTILS, TARGETS
from tests.hanging import HANG
from tests.missing import absent, toolchain_needed
from tools.binutils import provide


def assembler(machine: str, *options: str) -> list[str]:
    """Return the command of the newest assembler for a machine."""
    target, own = TARGETS[machine]
    with toolchain_needed():
        return [str(provide(BINUTILS, target) / "as"), *own, *options]


def assembled(machine: str, source: Path, *options: str) -> Path:
    """Return the object file of a source, with line information."""
    output = source.with_suffix(".o")
    command = [*assembler(machine, "-g", *options), "-o", str(output), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert not done.returncode, done.stderr
    return output


def written(folder: Path, text: str, name: str = "f.s") -> Path:
    """Return a source with some contents."""
    path = folder / name
    path.write_text(text)
    return path


def apply(patch: str, folder: Path) -> None:
    """Apply a patch to the sources in a folder."""
    if shutil.which("patch") is None:
        absent("patch is not installed: whether patches of sources can be applied stays untested")
    command = ["patch", "-p1", "-s", "-d", str(folder)]
    subprocess.run(command, input=patch, text=True, check=True, timeout=HANG)


def patched(machine: str, source: Path, capsys: pytest.CaptureFixture[str], *functions: str) -> tuple[int, str, str]:
    """Patch a source in place, after a proof; return the exit status, the patch and the messages."""
    command = shlex.join(assembler(machine, "-g"))
    arguments = ["annotate", "--patch", "-p", str(source.parent), "--prove", "--as", command]
    status = main([*arguments, str(assembled(machine, source)), *functions])
    patch, messages = capsys.readouterr()
    if patch:
        apply(patch, source.parent)
    return status, patch, messages


def rules(path: Path) -> dict[str, list[tuple[int, Said]]]:
    """Return offset and rule of each row of CFI, by function."""
    with opened(path) as binary:
        found = CfiRules(binary.arch)
        functions = [one for one in binary.cfi.all_functions() if isinstance(one, CfiFunction)]
        return {binary.function_name(one.start): list(zip(*found.rows(one, one.start, one.end))) for one in functions}
