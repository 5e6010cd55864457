"""Builds of `variables.c` with CFI in `.debug_frame`, in each of the possible places."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.gdb.compiling import FOLDER, SECONDS, compiled, tools_for

NO_EH_FRAME = ("-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")


def program(folder: Path, *flags: str) -> Path:
    """Build the program with CFI only in `.debug_frame`."""
    return compiled("variables.c", folder, *NO_EH_FRAME, *flags)


def stripped(path: Path) -> Path:
    """Build a program whose debug information is in a separate file."""
    _run("objcopy", "--only-keep-debug", path, path.with_suffix(".debug"))
    _run("objcopy", "--strip-debug", "--add-gnu-debuglink=" + str(path.with_suffix(".debug")), path)
    return path


def compressed(how: str) -> Callable[[Path], Path]:
    """Return a function that builds programs with compressed debug information."""

    def make(folder: Path) -> Path:
        path = program(folder)
        _run(tools_for(3) / "objcopy", "--compress-debug-sections=" + how, path)
        return path

    return make


def in_a_library(folder: Path) -> Path:
    """Build a program with the inner functions in a library, whose debug information is in a separate file."""
    library = folder / "libinner.so"
    tools, source = f"-B{tools_for(3)}/", str(FOLDER / "variables.c")
    flags = ("-g", "-Wa,--gsframe", *NO_EH_FRAME, "-fPIC", "-shared", "-DINNER_PART", "-Wl,-soname,libinner.so")
    _run("gcc", tools, *flags, source, "-o", library)
    stripped(library)
    return program(folder, "-DOUTER_PART", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{folder}")


def beside_eh_frame(folder: Path) -> Path:
    """Build a program with the inner functions' CFI in `.debug_frame`, and that of the outer ones in `.eh_frame`."""
    inner = folder / "inner.o"
    flags = ("-g", "-Wa,--gsframe", *NO_EH_FRAME, "-DINNER_PART", "-c")
    _run("gcc", f"-B{tools_for(3)}/", *flags, FOLDER / "variables.c", "-o", inner)
    return compiled("variables.c", folder, "-O2", "-DOUTER_PART", str(inner))


def at_a_high_address(folder: Path) -> Path:
    """Build a static program at an address that needs more than 32 bits, as in a kernel."""
    position = ("-static", "-no-pie", "-fpie", "-Wl,-Ttext-segment=0x600000000000")
    return program(folder, "-DFREESTANDING", "-nostdlib", *position)


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, timeout=SECONDS)


BUILDS: dict[str, Callable[[Path], Path]] = {
    "pie": program,
    "fixed": lambda folder: program(folder, "-no-pie"),
    "compressed": compressed("zlib"),
    "zdebug": compressed("zlib-gnu"),
    "debuglink": lambda folder: stripped(program(folder)),
    "library": in_a_library,
    "beside-eh-frame": beside_eh_frame,
    "high": at_a_high_address,
}
