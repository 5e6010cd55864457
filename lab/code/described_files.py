"""Provides the files with CFI on which rows from the machine code are measured: Debian's, and builds of Lua and Go.

They are kept in the checkout's `.cache/from-code`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lab.real_programs import COMPILERS, PROGRAMS, run, sources
from tests.hanging import HANG
from tools import producers
from tools.debian import download
from tools.kept import kept

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache" / "from-code"
SUITE = "bookworm"
_GO_SOURCE = Path(__file__).with_name("words.go")


class Machine(NamedTuple):
    """The names of a machine."""

    debian: str
    go: str
    clang: str


MACHINES = {
    "amd64": Machine("amd64", "amd64", "x86_64-linux-gnu"),
    "aarch64": Machine("arm64", "arm64", "aarch64-linux-gnu"),
    "s390x": Machine("s390x", "s390x", "s390x-linux-gnu"),
}

PACKAGED = {
    "libz.so.1": "zlib1g",
    "libexpat.so.1": "libexpat1",
    "libbz2.so.1.0": "libbz2-1.0",
    "libyaml-0.so.2": "libyaml-0-2",
    "libffi.so.8": "libffi8",
    "libgmp.so.10": "libgmp10",
    "hexyl": "hexyl",
    "HsColour": "hscolour",
    "spamoracle": "spamoracle",
    "bash": "bash",
    "libcrypto.so.3": "libssl3",
    "libc.so.6": "libc6",
}
"""Names of files and of Debian's packages with them."""
_LANGUAGES = {"hexyl": "Rust", "HsColour": "Haskell", "spamoracle": "OCaml"}

LUA_BUILDS = (("gcc", "-O0"), ("gcc", "-O1"), ("gcc", "-O3"), ("clang", "-O0"), ("clang", "-O2"), ("clang", "-O3"))
"""Compilers and levels of optimisation."""


class Described(NamedTuple):
    """A file with CFI."""

    machine: str
    label: str
    """The name of the file, and what is particular about it."""
    provide: Callable[[], Path]
    """Return its path; raises FetchError or ProgramError if it is not available."""


def described(machine: str) -> Iterator[Described]:
    """Yield the files of a machine, the largest ones of Debian last."""
    for compiler, level in LUA_BUILDS:
        yield Described(machine, f"Lua, {compiler} `{level}`", partial(_lua, machine, compiler, level))
    yield Described(machine, "a program in Go", partial(_go, machine))
    for name in PACKAGED:
        label = f"`{name}`" + (f", {_LANGUAGES[name]}" if name in _LANGUAGES else "")
        yield Described(machine, label, partial(_packaged, machine, name))


def _packaged(machine: str, name: str) -> Path:
    root = kept(CACHE / f"debian-{machine}", partial(_unpack, machine)) / "root"
    found = (path for path in sorted(root.rglob(name)) if path.is_file())
    return next(found).resolve()


def _unpack(machine: str, folder: Path) -> None:
    for package in download(SUITE, MACHINES[machine].debian, _chosen, folder / "packages"):
        command = ["dpkg-deb", "--extract", str(package), str(folder / "root")]
        subprocess.run(command, check=True, timeout=HANG)
        package.unlink()


def _chosen(index: Sequence[Mapping[str, str]]) -> list[str]:
    return sorted({entry["Package"] for entry in index} & set(PACKAGED.values()))


def _lua(machine: str, compiler: str, level: str) -> Path:
    return kept(CACHE / f"lua-{machine}-{compiler}{level}", partial(_compile_lua, machine, compiler, level)) / "lua"


def _compile_lua(machine: str, compiler: str, level: str, folder: Path) -> None:
    program = PROGRAMS["lua"]
    source, gcc = sources(program), COMPILERS[machine][0]
    first = [gcc] if compiler == "gcc" else _clang(machine)
    found = sorted(path for pattern in program.sources for path in source.glob(pattern))
    kept_back = [path for path in found if path.name not in program.left_out]
    for path in kept_back:
        flags = [level, "-w", "-fPIE", "-fasynchronous-unwind-tables", *program.flags]
        run([*first, *flags, "-c", str(path), "-o", str(folder / f"{path.stem}.o")], source)
    objects = [str(folder / f"{path.stem}.o") for path in kept_back]
    run([gcc, "-pie", *objects, *program.libraries, "-o", str(folder / "lua")], source)


def _clang(machine: str) -> list[str]:
    """Return clang, and the options with which it finds the headers that another folder has because of its loader."""
    folder = producers.provide()
    headers = next((folder.parent / "root/usr/lib/llvm-23/lib/clang").iterdir())
    return [str(folder / "clang"), f"--target={MACHINES[machine].clang}", f"-resource-dir={headers}"]


def _go(machine: str) -> Path:
    return kept(CACHE / f"go-{machine}", partial(_compile_go, machine)) / "words"


def _compile_go(machine: str, folder: Path) -> None:
    environment = {
        **os.environ,
        "GOARCH": MACHINES[machine].go,
        "CGO_ENABLED": "0",
        "GOCACHE": str(folder / "cache"),
        "GO111MODULE": "off",
    }
    command = ["go", "build", "-ldflags=-compressdwarf=false", "-o", str(folder / "words"), str(_GO_SOURCE)]
    subprocess.run(command, check=True, env=environment, timeout=HANG)
