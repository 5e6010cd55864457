"""Rewrites copies with SFrame by every strip and objcopy, and runs them.

    python -m tests.convert.strip_matrix [--abi ABI ...] [--only NAME ...]

Programs and libraries of this system, and a program linked in every way for each machine, are converted, rewritten by
each tool of binutils 2.40, 2.44 and 2.47, elfutils and LLVM, and run: a program must print the same as the original, a
library must load.  The SFrame section must be unchanged, at the place that the program headers give.
"""

from __future__ import annotations

import argparse
import collections
import functools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sframe_unwind import elf
from sframe_unwind.convert.source import DWARF
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from sframe_unwind.errors import SFrameError
from tests.cfi.libraries import libraries
from tests.convert import stripping
from tests.convert.stripping import KINDS, MORE_KINDS, PREFIX, SECONDS, SOURCE, compiled, output
from tools.binutils import CACHE, SUITES, provide
from tools.debian import unpack
from tools.kept import kept

PROGRAMS = (
    *(
        "bash",
        "cat",
        "file",
        "find",
        "g++",
        "gdb",
        "git",
        "grep",
        "ld.gold",
        "ldconfig",
        "make",
        "mold",
        "perl",
        "readelf",
    ),
    *("sed", "tar", "xz", "zstd"),
)
"""Programs of this system that print their version; ldconfig is linked as static-pie."""
LIBRARIES = {"amd64": 14, "aarch64": 6, "s390x": 6}
"""Number of libraries of each machine."""
_LOADS = """\
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names) {
    if (dlopen(names[1], RTLD_NOW)) return 0;
    puts(dlerror());
    return 1;
}
"""
_REFUSED = "status"
_TARGETS = {"amd64": "x86_64", "aarch64": "aarch64", "s390x": "s390x"}
_LLVM_SUITE, _LLVM = "sid", "23"


class Item(NamedTuple):
    """A file, and the way to run it."""

    abi: str
    name: str
    path: Path
    loader: Path | None
    """The program that loads it, if it is a library."""

    def run(self, file: Path) -> tuple[int, str]:
        """Run a copy of it, or load it."""
        if self.loader is not None:
            return output(self.abi, self.loader, str(file))
        status, text = output(self.abi, file, *(() if self.path.suffix else ("--version",)))
        return status, text.replace(str(file), "PROGRAM")


class Tool(NamedTuple):
    """A command that rewrites the file whose name follows."""

    name: str
    command: list[str]


@functools.cache
def tools(abi: str) -> tuple[Tool, ...]:
    """Return all tools for a machine."""
    found = []
    for version in SUITES:
        folder = provide(version, _TARGETS[abi])
        found += [
            Tool(f"strip {version}", [str(folder / "strip")]),
            Tool(f"strip -g {version}", [str(folder / "strip"), "-g"]),
            Tool(f"objcopy {version}", [str(folder / "objcopy")]),
            Tool(f"objcopy --strip-unneeded {version}", [str(folder / "objcopy"), "--strip-unneeded"]),
        ]
    found.append(Tool("eu-strip", [stripping.needed("eu-strip")]))
    for name, prefix in (("14", [stripping.needed("llvm-objcopy")]), (_LLVM, _newer_llvm())):
        found += [
            Tool(f"llvm-objcopy {name}", prefix),
            Tool(f"llvm-strip {name}", [*prefix, "--strip-all"]),
            Tool(f"llvm-strip -g {name}", [*prefix, "--strip-debug"]),
        ]
    return tuple(found)


def _newer_llvm() -> list[str]:
    """Return the command for llvm-objcopy of Debian unstable, which runs with its own libraries."""

    def fetch(folder: Path) -> None:
        unpack(_LLVM_SUITE, [f"llvm-{_LLVM}"], folder)
        for path in (folder / "root" / f"usr/lib/llvm-{_LLVM}/bin").iterdir():
            if path.name != "llvm-objcopy":
                path.unlink()  # 300 MB

    root = kept(CACHE.parent / "llvm-objcopy", fetch) / "root"
    libraries = root / "usr/lib/x86_64-linux-gnu"
    folders = f"{libraries}:{root}/usr/lib/llvm-{_LLVM}/lib"
    loader = [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", folders]
    return [*loader, str(root / f"usr/lib/llvm-{_LLVM}/bin/llvm-objcopy")]


def items(abis: list[str], folder: Path) -> Iterator[Item]:
    """Yield all files."""
    for abi in abis:
        for kind in (*KINDS, *MORE_KINDS):
            try:
                path = compiled(abi, folder, f"{kind.name}.{abi}", SOURCE, *kind.flags)
            except AssertionError:  # by `run`
                print(f"{abi} {kind.name}: the linker cannot do this")
                continue
            yield Item(abi, kind.name, path, None)
        loader = compiled(abi, folder, f"loads.{abi}", _LOADS)
        for library in libraries(abi, LIBRARIES[abi]):
            yield Item(abi, library.path.name, library.path, loader)
        for name in PROGRAMS if abi == "amd64" else ():
            if path_of := shutil.which(name, path="/usr/bin:/usr/sbin"):
                yield Item(abi, name, Path(path_of).resolve(), None)


def sframe_of(path: Path) -> tuple[int, bytes]:
    """Return address and contents of the SFrame segment of a file."""
    with elf.opened(path) as binary:
        (segment,) = binary.sframe_segments
        return segment.address, binary.read(segment.offset, segment.file_size)


def check(item: Item, tool: Tool, converted: Path, expected: tuple[int, str]) -> str:
    """Return the error of a copy that a tool has rewritten; empty: there is none."""
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(shutil.copy(converted, Path(folder, converted.name)))
        done = subprocess.run([*tool.command, changed], capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            return f"{_REFUSED} {done.returncode}: {done.stderr.strip().replace(str(changed), 'FILE')[-200:]}"
        try:
            if sframe_of(changed) != sframe_of(converted):
                return "another SFrame section"
        except (SFrameError, ValueError) as error:
            return f"no SFrame section: {error}"
        found = item.run(changed)
        return "" if found == expected else f"does not run: {found[0]}, {found[1][-200:]!r}"


def main() -> int:
    """Run all and print a table; return exit status 1 if a file does not run any more."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--abi", action="append", choices=list(PREFIX), help="only this machine; may be repeated")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this file; may be repeated")
    options = parser.parse_args()
    by_tool: collections.Counter[str] = collections.Counter()
    files, failed = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copies = folder / "copies"
        copies.mkdir()
        for item in items(options.abi or list(PREFIX), folder):
            if options.only and item.name not in options.only:
                continue
            expected = item.run(item.path)
            if item.loader is not None and expected[0]:
                continue  # it cannot be loaded by itself
            converted = copies / item.path.name  # programs print their names
            try:
                convert_to_sframe(item.path, converted, Wanted(source=DWARF))
            except SFrameError as error:
                print(f"{item.abi} {item.name}: not converted: {error}", flush=True)
                continue
            files += 1
            for tool in (Tool("nothing", ["true"]), *tools(item.abi)):
                wrong = check(item, tool, converted, expected)
                if wrong.startswith(_REFUSED) and wrong == check(item, tool, item.path, expected):
                    by_tool["refused, as the original is"] += 1
                    continue
                by_tool[tool.name] += not wrong
                if wrong:
                    failed += 1
                    print(f"{item.abi} {item.name}: {tool.name}: {wrong}", flush=True)
            print(f"{item.abi} {item.name}: done", flush=True)
            converted.unlink()
    print("; ".join(f"{tool}: {count}" for tool, count in by_tool.items()))
    print(f"{files} files, {sum(by_tool.values())} of {sum(by_tool.values()) + failed} as they should be, {failed} not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
