#!/usr/bin/env python3
"""Provides the producers of SFrame besides GNU binutils: clang, lld and mold, from Debian unstable.

As with the binutils, they are unpacked into the checkout's `.cache` folder and run there with their own C library.

    python3 tools/producers.py
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
if str(CHECKOUT) not in sys.path:  # when run as a script
    sys.path.insert(0, str(CHECKOUT))

from tools.binutils import ToolchainUnavailable  # noqa: E402
from tools.debian import FetchError, unpack  # noqa: E402
from tools.ending import exit_with  # noqa: E402
from tools.kept import kept  # noqa: E402

SUITE = "sid"
PACKAGES = ("clang-23", "lld-23", "mold")
CACHE = CHECKOUT / ".cache" / "producers"
VERSIONS = "versions"
"""Name of the file with the version lines of the tools."""
TIMEOUT = 60
"""Time limit for one run of a tool, in seconds."""

_LIBRARIES, _LLVM = "usr/lib/x86_64-linux-gnu", "usr/lib/llvm-23"
_PROGRAMS = {"clang": f"{_LLVM}/bin/clang", "ld.lld": f"{_LLVM}/bin/lld", "mold": "usr/bin/mold"}
_FLAVOR = {"ld.lld": "-flavor gnu"}
"""Options that tell lld which linker it is: the loader runs it by another name."""

WRAPPER = """\
#!/bin/sh
root="${{0%/*}}/../root"
exec "$root/{libraries}/ld-linux-x86-64.so.2" --library-path "$root/{libraries}:$root/{llvm}/lib" \\
    "$root/{program}" {flavor} "$@"
"""


@functools.cache
def provide() -> Path:
    """Return the folder with `clang`, `ld.lld` and `mold`; fetch them if necessary.

    Raises ToolchainUnavailable if the packages are not available.
    """
    try:
        return kept(CACHE, _fetch) / "bin"
    except (FetchError, OSError, subprocess.TimeoutExpired) as error:
        what = f"clang, lld and mold of Debian {SUITE}"
        raise ToolchainUnavailable(f"{what}: {error}: what they write stays untested") from error


def _fetch(folder: Path) -> None:
    unpack(SUITE, PACKAGES, folder)
    for unused in ("usr/share", "usr/include", "usr/lib/gcc", "etc", "var"):
        shutil.rmtree(folder / "root" / unused, ignore_errors=True)
    (folder / "bin").mkdir()
    versions = [_wrap(folder, name) for name in _PROGRAMS]
    (folder / VERSIONS).write_text("".join(f"{version}\n" for version in versions), encoding="utf-8")


def _wrap(folder: Path, name: str) -> str:
    """Write the script that runs a tool, and return its version line; raises FetchError if it does not run."""
    script = folder / "bin" / name
    text = WRAPPER.format(libraries=_LIBRARIES, llvm=_LLVM, program=_PROGRAMS[name], flavor=_FLAVOR.get(name, ""))
    script.write_text(text, encoding="ascii")
    script.chmod(0o755)
    done = subprocess.run([str(script), "--version"], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        raise FetchError(f"{name}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout.splitlines()[0]


def main() -> int:
    """Provide the tools; return exit status 1 if they are not available."""
    try:
        print(f"{provide()}\n{(CACHE / VERSIONS).read_text(encoding='utf-8')}", end="")
    except ToolchainUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    exit_with(main)
