"""Object files from two small sources, built with the assembler and linker of one SFrame version."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.samples.build import toolchain
from tests.samples.catalogue import ABIS

ONE = """
int use(int *);
int first(int a) { int b[20] = { a }; use(b); return b[3]; }
static int __attribute__((noinline)) helper(int *p) { return use(p) + 1; }
int __attribute__((section(".text.cold"))) second(int a) { int b = a; use(&b); return b + helper(&b); }
"""
TWO = """
int first(int);
int second(int);
int use(int *p) { return *p; }
static int __attribute__((noinline)) helper(int *p) { int b = use(p); return use(&b) * 3; }
int start(int a) { int b = first(a) + second(a); return helper(&b) + 1; }
"""
NAMES = ("first", "second", "use", "start")
"""The functions with external linkage; each source has its own `helper` besides."""

TIMEOUT = HANG
"""Time limit for a tool, in seconds."""
FUNCTION = """
    .macro function name
    .balign 4
    .globl \\name
    .type \\name, %function
\\name:
    .endm
"""
"""Assembly for AArch64: a macro that begins a function."""


def tools_for(abi: str, version: int) -> Path:
    """Return the tools that write a version of SFrame; skip the test if there are none."""
    with toolchain_needed():
        return toolchain(abi, version)


def run(*command: object) -> None:
    """Run a command; if it fails, fail the test with its message."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


def compile_object(tools: Path, abi: str, source: str, result: Path) -> Path:
    """Compile an object file with SFrame."""
    file = result.with_suffix(".c")
    file.write_text(source, encoding="ascii")
    flags = [flag for flag in ABIS[abi].flags if not flag.startswith("-Wl")]
    flags += ["-O2", "-ffreestanding", "-fno-pie", "-fno-stack-protector", "-fasynchronous-unwind-tables"]
    run(ABIS[abi].compiler, *flags, f"-B{tools}/", "-Wa,--gsframe", "-c", file, "-o", result)
    return result


def compile_both(tools: Path, abi: str, folder: Path) -> list[Path]:
    """Compile :data:`ONE` and :data:`TWO` to object files with SFrame."""
    return [compile_object(tools, abi, source, folder / name) for name, source in (("one.o", ONE), ("two.o", TWO))]


def link(tools: Path, abi: str, result: Path, *inputs: Path, options: tuple[str, ...] = ("-e", "start")) -> Path:
    """Link the inputs to a program, or with `-r` to another object file."""
    order = ["-EB"] if abi == "aarch64_be" else []
    run(tools / "ld", *order, *options, "-o", result, *inputs)
    return result
