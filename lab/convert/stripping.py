"""Builds the programs of the tests with strip, runs tools that rewrite them, and returns their output."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.elf.objects import run
from tests.hanging import HANG
from tests.missing import absent
from tests.samples.catalogue import ABIS

SOURCE = """\
#include <stdio.h>
#ifndef SIZE
#define SIZE (1 << 20)
#endif
static char large[SIZE];
int main(int count, char **names) {
    large[count] = 1;
    printf("ok %d\\n", large[1]);
    return 0;
}
"""
GO = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("ok", 1) }\n'
LIBRARY = "int twice(int value) { return 2 * value; }\n"
USER = "extern int twice(int); int main(void) { return twice(21) != 42; }\n"
PREFIX = {"amd64": "", "aarch64": "aarch64-linux-gnu-", "s390x": "s390x-linux-gnu-"}
REFUSED_BY_LLVM = "is not a symbol table"
"""llvm-strip refuses static programs of GNU ld, with or without SFrame, and leaves them unchanged."""
SECONDS = HANG


class Kind(NamedTuple):
    """A way to link a program."""

    name: str
    flags: tuple[str, ...]


KINDS = (
    Kind("pie", ("-pie", "-fPIE")),
    Kind("no-pie", ("-no-pie",)),
    Kind("static", ("-static",)),
    Kind("64K-pages", ("-pie", "-fPIE", "-Wl,-z,max-page-size=65536")),
    Kind("no-build-id", ("-pie", "-fPIE", "-Wl,--build-id=none")),
)
LINKERS = (
    *(
        Kind(f"{linker}-{name}", (f"-fuse-ld={linker}", *flags))
        for linker in ("gold", "mold", "lld")
        for name, flags in (("pie", ("-pie", "-fPIE")), ("no-pie", ("-no-pie",)), ("static", ("-static",)))
    ),
)
"""Ways to link with other linkers, for AMD64."""
MORE_KINDS = (
    Kind("static-pie", ("-static-pie", "-fPIE")),
    Kind("large-bss", ("-pie", "-fPIE", "-DSIZE=(1ul << 30)")),
    Kind("one-segment-of-code", ("-pie", "-fPIE", "-Wl,-z,noseparate-code")),
    Kind("lazy-binding", ("-no-pie", "-Wl,-z,lazy,-z,norelro")),
    Kind("high-base", ("-no-pie", "-Wl,-Ttext-segment=0x10000000")),
    Kind("emit-relocations", ("-pie", "-fPIE", "-Wl,--emit-relocs")),
)
"""Ways to link for the matrix, besides :data:`KINDS`."""


def by_go(folder: Path, name: str) -> Path:
    """Build a program in Go that prints the same."""
    (folder / f"{name}.go").write_text(GO, encoding="utf-8")
    caches = {"GOCACHE": str(folder / "go-cache"), "GOPATH": str(folder / "go-path"), "GO111MODULE": "off"}
    command = [needed("go"), "build", "-o", str(folder / name), str(folder / f"{name}.go")]
    subprocess.run(command, env={**os.environ, **caches}, check=True, timeout=SECONDS)
    return folder / name


def needed(program: str) -> str:
    """Return the path of a program."""
    return shutil.which(program) or absent(f"{program} is not installed: copies that it rewrites stay untested")


def rewritten(command: list[str], file: Path) -> None:
    """Rewrite a file by a tool."""
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0 or REFUSED_BY_LLVM in done.stderr, done.stderr


def output(abi: str, file: Path, *arguments: str) -> tuple[int, str]:
    """Run a program; return its exit status and its output."""
    command = [*ABIS[abi].emulator, str(file), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr


def compiled(abi: str, folder: Path, name: str, source: str, *flags: object, compiler: str = "gcc") -> Path:
    """Compile a program or a library of one source."""
    (folder / f"{name}.c").write_text(source, encoding="utf-8")
    for flag in map(str, flags):
        if flag.startswith("-fuse-ld="):
            needed("ld." + flag.partition("=")[2])
    run(
        needed(PREFIX[abi] + compiler),
        "-O2",
        "-fasynchronous-unwind-tables",
        folder / f"{name}.c",
        *flags,
        "-o",
        folder / name,
    )
    return folder / name
