"""A generated program of thousands of functions, with its SFrame and DWARF unwind data from real tools.

The functions have the prologues and epilogues, and the unwind directives, that gcc gives them at -O2; between those
lie bytes that nobody executes.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
import tempfile
from pathlib import Path

from bench.report import Unavailable
from sframe_unwind import elf
from tools.binutils import SFRAME_VERSIONS, ToolchainUnavailable, provide

CACHE = Path(__file__).resolve().parents[1] / ".cache" / "bench"

FUNCTIONS = 20_000
"""Number of functions in the object file."""

_TIMEOUT = 300
_SAVED = (("rbx", 3), ("rbp", 6), ("r12", 12), ("r13", 13), ("r14", 14), ("r15", 15))
"""The callee-saved registers in the order in which gcc uses them, with their DWARF numbers."""


def build(sframe_version: int, copies: int = 1) -> Path:
    """Return the path of a program for AMD64 of ``copies * FUNCTIONS`` functions; build it if necessary.

    The object file is linked as often as wanted: the linker merges the sections as it does for different ones.

    :raises Unavailable: the assembler cannot be had.
    """
    source = _source()
    release = next(name for name, version in SFRAME_VERSIONS.items() if version == sframe_version)
    key = hashlib.sha256(source.encode()).hexdigest()[:12]
    path = CACHE / f"functions-v{sframe_version}-{copies * FUNCTIONS}-{key}"
    if path.exists():
        return path
    try:
        tools = provide(release, "x86_64")
    except ToolchainUnavailable as error:
        raise Unavailable(str(error)) from error
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        object_file, program = Path(folder) / "functions.o", Path(folder) / "program"
        _run([str(tools / "as"), "--gsframe", "-o", str(object_file), "-"], source)
        _run([str(tools / "ld"), "--eh-frame-hdr", "-e", "0", "-o", str(program), *[str(object_file)] * copies])
        program.replace(path)
    return path


def section_bytes(path: Path) -> bytes:
    """Return the contents of the SFrame section of a program."""
    with elf.opened(path) as binary:
        return binary.contents(binary.sframe_sections[0])


def _run(command: list[str], text: str = "") -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    if done.returncode:
        raise Unavailable(f"{command[0]}: exit status {done.returncode}: {done.stderr.strip()[-200:]}")


def _source() -> str:
    choose = random.Random(20)  # a fixed seed makes the program reproducible
    lines = [".text"]
    for number in range(FUNCTIONS):
        lines += [f".type f{number}, @function", f"f{number}:", ".cfi_startproc"]
        lines += _framed(choose) if choose.random() < 0.1 else _frameless(choose)
        lines += [".cfi_endproc", f".size f{number}, .-f{number}", ".p2align 4"]
    return "\n".join(lines) + "\n"


def _body(choose: random.Random, longest: int) -> str:
    return f".skip {choose.randint(1, longest)}, 0x90"


def _framed(choose: random.Random) -> list[str]:
    """Return a function with a frame pointer, such as one with a variable-length array: 3 rows."""
    return [
        *("push %rbp", ".cfi_def_cfa_offset 16", ".cfi_offset 6, -16"),
        *("mov %rsp, %rbp", ".cfi_def_cfa_register 6"),
        _body(choose, 300),
        *("leave", ".cfi_def_cfa 7, 8", "ret"),
    ]


def _frameless(choose: random.Random) -> list[str]:
    """Return a function that saves up to five registers and has local variables; one in four has an early return."""
    saved = _SAVED[: choose.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 5))]
    locals_size = choose.choice((0, 8, 24, 40, 136)) if saved else 24
    lines, cfa = [], 8
    for name, number in reversed(saved):
        cfa += 8
        lines += [f"push %{name}", f".cfi_def_cfa_offset {cfa}", f".cfi_offset {number}, -{cfa}", _body(choose, 4)]
    if locals_size:
        lines += [f"sub ${locals_size}, %rsp", f".cfi_def_cfa_offset {cfa + locals_size}"]
    lines.append(_body(choose, 200))
    leave = _epilogue(saved, cfa, locals_size)
    if choose.random() < 0.25:
        lines += [".cfi_remember_state", *leave, ".cfi_restore_state", _body(choose, 60)]
    return lines + leave


def _epilogue(saved: tuple[tuple[str, int], ...], cfa: int, locals_size: int) -> list[str]:
    lines = []
    if locals_size:
        lines += [f"add ${locals_size}, %rsp", f".cfi_def_cfa_offset {cfa}"]
    for name, _ in saved:
        cfa -= 8
        lines += [f"pop %{name}", f".cfi_def_cfa_offset {cfa}"]
    return [*lines, "ret"]
