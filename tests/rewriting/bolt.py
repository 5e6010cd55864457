"""Programs that BOLT has rewritten after linking: CFI is right there, and SFrame is that of the code before."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.elf.objects import run, tools_for
from tests.missing import absent

SOURCE = Path(__file__).with_name("stops.c")
FLAGS = ("-O2", "-fomit-frame-pointer", "-fasynchronous-unwind-tables", "-fno-reorder-blocks-and-partition")
_VERSIONS = (*range(23, 18, -1), 16)
"""Versions of BOLT that Debian's packages have in their names.  Version 17 crashes when it reads static programs."""


def path() -> str | None:
    """Return the path of BOLT; ``None``: it is not installed."""
    names = ("llvm-bolt", *(f"llvm-bolt-{version}" for version in _VERSIONS))
    return next(filter(None, map(shutil.which, names)), None)


def bolt() -> str:
    """Return the path of BOLT."""
    found = path()
    return found or absent("llvm-bolt is not installed (Debian: bolt-16): files that it rewrites stay untested")


def compiled(folder: Path, version: int = 3, *flags: str) -> Path:
    """Compile :data:`SOURCE` with a version of SFrame."""
    program = folder / "stops"
    run("gcc", f"-B{tools_for('amd64', version)}/", *FLAGS, "-Wa,--gsframe", *flags, SOURCE, "-o", program)
    return program


def bolted(program: Path, *flags: str) -> Path:
    """Return a copy whose blocks BOLT has put into the reverse order.

    If the program was linked with ``--emit-relocs``, BOLT also moves its functions.
    """
    result = program.with_name(f"{program.name}.bolt")
    run(bolt(), program, "-o", result, "-lite=0", "-reorder-blocks=reverse", *flags)
    return result
