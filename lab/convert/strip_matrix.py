"""Rewrites copies with SFrame by every strip and objcopy, and runs them.

    python -m lab.convert.strip_matrix [--abi ABI ...] [--only NAME ...]

Programs and libraries of this system, and a program linked in every way for each machine, are converted, rewritten by
each tool of binutils 2.40, 2.44 and 2.47, elfutils and LLVM, by patchelf, and by two of them, and run: a program must
print the same as the original, a library must load.  The SFrame section must be unchanged, at the place that the
program headers give.  What the tools do to the original does not count as an error.
"""

from __future__ import annotations

import argparse
import collections
import functools
import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab.cfi.libraries import libraries
from lab.convert import stripping
from lab.convert.stripping import KINDS, LINKERS, MORE_KINDS, PREFIX, SECONDS, SOURCE, compiled, output
from sframe_unwind import elf
from sframe_unwind.convert.source import DWARF
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from sframe_unwind.elf.constants import PT_INTERP
from sframe_unwind.errors import SFrameError
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
_LONG_PATH = ":".join(f"/nonexistent/folder/number/{number}" for number in range(8))
_LLVM_SUITE, _LLVM = "sid", "23"


class Item(NamedTuple):
    """A file, and the way to run it."""

    abi: str
    name: str
    path: Path
    loader: Path | None
    """The program that loads it, if it is a library."""

    @property
    def dynamic_linker(self) -> str:
        """The path of its dynamic linker, or that of any program, if it is static."""
        with elf.opened(self.path) as binary:
            for segment in binary.segments:
                if segment.type == PT_INTERP:
                    return binary.read(segment.offset, segment.file_size).rstrip(b"\0").decode()
        return "/lib64/ld.so"

    def run(self, file: Path) -> tuple[int, str]:
        """Run a copy of it, or load it."""
        if self.loader is not None:
            return output(self.abi, self.loader, str(file))
        status, text = output(self.abi, file, *(() if self.path.suffix else ("--version",)))
        return status, text.replace(str(file), "PROGRAM")


class Tool(NamedTuple):
    """Commands that rewrite the file whose name follows, one after the other."""

    name: str
    commands: tuple[list[str], ...]


def _tool(name: str, *command: str) -> Tool:
    return Tool(name, (list(command),))


@functools.cache
def tools(abi: str, loader: str) -> tuple[Tool, ...]:
    """Return all tools for a machine.

    :param loader: path of the dynamic linker.
    """
    found = []
    for version in SUITES:
        folder = provide(version, _TARGETS[abi])
        found += [
            _tool(f"strip {version}", str(folder / "strip")),
            _tool(f"strip -g {version}", str(folder / "strip"), "-g"),
            _tool(f"objcopy {version}", str(folder / "objcopy")),
            _tool(f"objcopy --strip-unneeded {version}", str(folder / "objcopy"), "--strip-unneeded"),
        ]
    found.append(_tool("eu-strip", stripping.needed("eu-strip")))
    for name, prefix in (("14", [stripping.needed("llvm-objcopy")]), (_LLVM, _newer_llvm())):
        found += [
            _tool(f"llvm-objcopy {name}", *prefix),
            _tool(f"llvm-strip {name}", *prefix, "--strip-all"),
            _tool(f"llvm-strip -g {name}", *prefix, "--strip-debug"),
        ]
    moving = _patchelf(loader)
    return (*found, *moving, *_twice(found, moving))


def _patchelf(loader: str) -> list[Tool]:
    """Return commands of patchelf that need longer names, for which it moves sections."""
    patchelf, folder, name = stripping.needed("patchelf"), *loader.rsplit("/", 1)
    long_loader = f"{folder}{f'/../{Path(folder).name}' * 8}/{name}"
    return [
        _tool("patchelf --set-rpath", patchelf, "--set-rpath", _LONG_PATH),
        _tool("patchelf --set-interpreter", patchelf, "--set-interpreter", long_loader),
        _tool("patchelf --add-needed", patchelf, "--add-needed", "libm.so.6"),
    ]


def _twice(others: list[Tool], moving: list[Tool]) -> Iterator[Tool]:
    """Yield pairs of tools: each of patchelf's commands before, after and behind another tool."""
    chosen = [tool for tool in others if tool.name.split()[0] in ("strip", "objcopy", "eu-strip", "llvm-strip")]
    for number, tool in enumerate(chosen):
        one = moving[number % len(moving)]
        # LLVM 14 breaks each program, converted or not, in which patchelf has moved nothing but the interpreter's name:
        # it lays that segment out with the alignment of PT_INTERP, which begins at the same offset.
        if not (tool.name.endswith(" 14") and "--set-interpreter" in one.name):
            yield Tool(f"{one.name}, {tool.name}", one.commands + tool.commands)
        yield Tool(f"{tool.name}, {one.name}", tool.commands + one.commands)
    for one, other in itertools.permutations(moving, 2):
        yield Tool(f"{one.name}, {other.name}", one.commands + other.commands)


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
        yield from _of_other_makers(folder) if abi == "amd64" else ()
        loader = compiled(abi, folder, f"loads.{abi}", _LOADS)
        for library in libraries(abi, LIBRARIES[abi]):
            yield Item(abi, library.path.name, library.path, loader)
        for name in PROGRAMS if abi == "amd64" else ():
            if path_of := shutil.which(name, path="/usr/bin:/usr/sbin"):
                yield Item(abi, name, Path(path_of).resolve(), None)


def _of_other_makers(folder: Path) -> Iterator[Item]:
    """Yield programs of other linkers, another C library and another compiler."""
    for kind in LINKERS:
        yield Item("amd64", kind.name, compiled("amd64", folder, f"{kind.name}.amd64", SOURCE, *kind.flags), None)
    for name, flags in (("musl", ()), ("musl-static", ("-static",))):
        path = compiled("amd64", folder, f"{name}.amd64", SOURCE, *flags, compiler="musl-gcc")
        yield Item("amd64", name, path, None)
    yield Item("amd64", "go", stripping.by_go(folder, "go.amd64"), None)


def sframe_of(path: Path) -> tuple[int, bytes]:
    """Return address and contents of the SFrame segment of a file."""
    with elf.opened(path) as binary:
        (segment,) = binary.sframe_segments
        return segment.address, binary.read(segment.offset, segment.file_size)


def rewrite(tool: Tool, file: Path) -> str:
    """Rewrite a file; return the error of the tool; empty: there is none."""
    for command in tool.commands:
        done = subprocess.run([*command, file], capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            return f"{_REFUSED} {done.returncode}: {done.stderr.strip().replace(str(file), 'FILE')[-200:]}"
    return ""


def check(item: Item, tool: Tool, converted: Path, expected: tuple[int, str]) -> str:
    """Return the error of a copy that a tool has rewritten; empty: there is none."""
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(shutil.copy(converted, Path(folder, converted.name)))
        refused = rewrite(tool, changed)
        if refused:
            return refused
        try:
            if sframe_of(changed) != sframe_of(converted):
                return "another SFrame section"
        except (SFrameError, ValueError) as error:
            return f"no SFrame section: {error}"
        found = item.run(changed)
        return "" if found == expected else f"does not run: {found[0]}, {found[1][-200:]!r}"


def _as_original(item: Item, tool: Tool, wrong: str, expected: tuple[int, str]) -> str:
    """Return what happens to the original, too, if an error is not that of the copy; empty: it is."""
    with tempfile.TemporaryDirectory() as folder:
        original = Path(shutil.copy(item.path, Path(folder, item.path.name)))
        refused = rewrite(tool, original)
        if refused or wrong.startswith(_REFUSED):
            return "refused, as the original is" if refused and wrong.startswith(_REFUSED) else ""
        return "" if item.run(original) == expected else "broken, as the original is"


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
            for tool in (_tool("nothing", "true"), *tools(item.abi, item.dynamic_linker)):
                wrong = check(item, tool, converted, expected)
                as_original = _as_original(item, tool, wrong, expected) if wrong else ""
                if as_original:
                    by_tool[as_original] += 1
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
