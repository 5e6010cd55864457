"""Steps a program through a C library with SFrame made from its CFI; at each step, the frames must be GDB's own.

    python -m lab.convert.stepping [--steps N] [--abi ABI] [--compact | --generate]

takes some minutes; a test does the same for fewer instructions.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lab.cfi.libraries import FOLDERS
from sframe_unwind.convert.source import DWARF
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from sframe_unwind.translation.compact import MAX_ROWS
from tests.abis.debuggers import newest
from tests.gdb.driver import call
from tests.hanging import HANG, hang_after
from tests.samples.catalogue import ABIS

SOURCE = Path(__file__).with_name("through_libc.c")
_SECONDS = hang_after(120)
_COMPILE_SECONDS = HANG


def prepare(abi: str, folder: Path, convert: bool = True, max_rows: int | None = None) -> dict[str, Any]:
    """Return the arguments of the walk: a program, and the C library, with SFrame made from their CFI.

    :param convert: ``False``: the files stay unchanged.
    :param max_rows: maximum number of rows of an entry for several functions; ``None``: each function has its own.
    """
    program = folder / "through_libc"
    emulator = list(ABIS[abi].emulator)
    libraries = folder / "lib"
    linker = next(path for path in FOLDERS[abi].glob("ld*.so.*"))
    flags = ["-O2", "-Wl,-z,now", "-fno-stack-protector"]
    if not emulator:
        flags.append(f"-Wl,--dynamic-linker={libraries / linker.name}")
    subprocess.run([ABIS[abi].compiler, *flags, "-o", str(program), str(SOURCE)], check=True, timeout=_COMPILE_SECONDS)
    sysroot = ""
    if emulator:
        root = FOLDERS[abi].parent
        shutil.copytree(root / "lib", libraries, symlinks=True)
        sysroot = emulator[emulator.index("-L") + 1] = str(folder)
    else:
        libraries.mkdir()
        for path in (FOLDERS[abi] / "libc.so.6", linker):
            shutil.copy(path, libraries)
    if convert:
        for path in (program, libraries / "libc.so.6", libraries / linker.name):
            convert_to_sframe(path, path, Wanted(source=DWARF, max_rows=max_rows))
    described = {"executable": str(program), "arguments": [], "emulator": emulator, "signals": ["SIGUSR1"]}
    return {"program": described, "library_path": "" if emulator else str(libraries), "sysroot": sysroot}


def walk(
    abi: str, steps: int, generate: bool = False, seconds: float = _SECONDS, max_rows: int | None = None
) -> dict[str, Any]:
    """Step a program; return the result.

    :param generate: the files are not converted, but the plugin is told to generate SFrame.
    :param max_rows: see :func:`prepare`.
    """
    with tempfile.TemporaryDirectory() as folder:
        arguments = prepare(abi, Path(folder), not generate, max_rows)
        settings = ["set sframe generate on"] if generate else []
        function = "lab.convert.inside.stepping.walk"
        result: dict[str, Any] = call(
            newest(abi), function, seconds=seconds, steps=steps, settings=settings, **arguments
        )
        return result


def main() -> int:
    """Step, and print the result; return exit status 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--abi", choices=FOLDERS, default="amd64")
    parser.add_argument("--steps", type=int, default=20_000)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--compact", action="store_true", help="with the sections of convert --compact")
    how.add_argument("--generate", action="store_true", help="let the plugin generate SFrame instead")
    options = parser.parse_args()
    started = time.monotonic()
    found = walk(options.abi, options.steps, options.generate, max_rows=MAX_ROWS if options.compact else None)
    print(
        f"{options.abi}: {found['count']:,} instructions in {found['functions']} functions, {found['in library']:,} of"
        f" them in the C library; {found['frames']:,} frames; {time.monotonic() - started:.0f} s"
    )
    print(f"not by SFrame: {found['others'] or 'none'}")
    print(f"{found['different']} differences")
    for difference in found["differences"]:
        print(json.dumps(difference))
    return 1 if found["different"] or found["count"] < options.steps else 0


if __name__ == "__main__":
    sys.exit(main())
