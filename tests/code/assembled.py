"""Object files of assembly sources, with SFrame and DWARF CFI, and libraries."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sframe_unwind.verify import Plan, verify
from sframe_unwind.verify.code_report import CodeReport
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tools.binutils import provide

BINUTILS = "2.47"
TARGETS = {
    "amd64": ("x86_64", ()),
    "aarch64": ("aarch64", ()),
    "aarch64_be": ("aarch64", ("-EB",)),
    "s390x": ("s390x", ()),
}
"""The target in binutils, and options of the assembler."""


def report_on(machine: str, source: str, folder: Path) -> CodeReport:
    """Return the report of ``verify --against code`` on an assembly source."""
    found = verify(assemble(machine, source, folder / "f.o"), Plan(dwarf=False, code=True)).code
    assert found is not None
    return found


def assemble(machine: str, source: str, path: Path) -> Path:
    """Assemble a source with the newest assembler."""
    text = path.with_suffix(".s")
    text.write_text(source)
    target, options = TARGETS[machine]
    with toolchain_needed():
        tools = provide(BINUTILS, target)
    done = subprocess.run(
        [str(tools / "as"), *options, "--gsframe", str(text), "-o", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG,
    )
    assert done.returncode == 0, done.stderr
    return path


def library(machine: str, source: str, folder: Path, *options: str) -> Path:
    """Return a library of an assembly source.

    :param options: of the linker.
    """
    made, path = assemble(machine, source, folder / "f.o"), folder / "f.so"
    linker = provide(BINUTILS, TARGETS[machine][0]) / "ld"
    subprocess.run([str(linker), "-shared", *options, str(made), "-o", str(path)], check=True, timeout=HANG)
    return path


def linked(source: str, folder: Path) -> Path:
    """Return a library of an assembly source for AMD64."""
    library = folder / "library.so"
    command = ["gcc", "-shared", "-nostdlib", "-x", "assembler", "-o", str(library), "-"]
    subprocess.run(command, input=source, text=True, check=True, timeout=HANG)
    return library
