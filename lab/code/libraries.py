"""Compares the DWARF CFI of libraries of Debian 13 with their machine code, and prints the table of the results.

python -m lab.code.libraries [--keep FOLDER] [--machine NAME]... [--library NAME]...

For each library: its instructions, how many of them have a rule that the code refutes or that is unknown, the number of
findings, and how many instructions `verify` judges in a second of processor time, with its start, in one process.  All
instructions of the functions that CFI describes count.  FOLDER has the files, and the whole result of each library
with the reasons of the unknown rules.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.hanging import HANG
from tools.debian import download
from tools.ending import exit_with

SUITE = "trixie"


class Package(NamedTuple):
    """A package, and those of its libraries that are judged."""

    name: str
    libraries: tuple[str, ...]


_EVERYWHERE = (
    Package("libc6", ("libc.so.6", "ld-*.so.*", "libm.so.6")),
    Package("libssl3t64", ("libcrypto.so.3",)),
    Package("libgcrypt20", ("libgcrypt.so.20",)),
    Package("libffi8", ("libffi.so.8",)),
)
_HAND_WRITTEN = (
    Package("libgcc-s1", ("libgcc_s.so.1",)),
    Package("libgmp10", ("libgmp.so.10",)),
    Package("libjpeg62-turbo", ("libjpeg.so.62",)),
    Package("libluajit-5.1-2", ("libluajit-5.1.so.2",)),
    Package("libunwind8", ("libunwind.so.8",)),
    Package("libpixman-1-0", ("libpixman-1.so.0",)),
    Package("libdav1d7", ("libdav1d.so.7",)),
)
_PACKAGES = {
    "amd64": (
        *_EVERYWHERE,
        *_HAND_WRITTEN,
        Package("libitm1", ("libitm.so.1",)),
        Package("libstdc++6", ("libstdc++.so.6",)),
        Package("libzstd1", ("libzstd.so.1",)),
        Package("libbz2-1.0", ("libbz2.so.1.0",)),
        Package("liblzma5", ("liblzma.so.5",)),
        Package("libsodium23", ("libsodium.so.23",)),
        Package("libhogweed6t64", ("libhogweed.so.6",)),
        Package("libnettle8t64", ("libnettle.so.8",)),
        Package("libopus0", ("libopus.so.0",)),
    ),
    "arm64": (*_EVERYWHERE, *_HAND_WRITTEN),
    # Mirrors lack packages of this architecture that were replaced by others.
    "s390x": (
        Package("libffi8", ("libffi.so.8",)),
        Package("libgcc-s1", ("libgcc_s.so.1",)),
        Package("libgmp10", ("libgmp.so.10",)),
        Package("libpixman-1-0", ("libpixman-1.so.0",)),
        Package("libdav1d7", ("libdav1d.so.7",)),
        Package("libbz2-1.0", ("libbz2.so.1.0",)),
        Package("libzstd1", ("libzstd.so.1",)),
    ),
}
"""The packages of each architecture of Debian: with much assembly, or that everything uses."""


class Result(NamedTuple):
    """The result for one library."""

    library: str
    machine: str
    instructions: int
    wrong: int
    unknown: int
    findings: int
    seconds: float
    """Processor time."""

    @property
    def share(self) -> float:
        """The percentage of unknown instructions."""
        return 100 * self.unknown / self.instructions

    def __str__(self) -> str:
        speed = f"{self.instructions / self.seconds:,.0f}"
        return (
            f"| {self.library} | {self.machine} | {self.instructions:,} | {self.wrong:,} | {self.findings:,} |"
            f" {self.unknown:,} | {self.share:.2f}% | {self.seconds:.1f} | {speed} |"
        )


def libraries(machine: str, folder: Path) -> Iterator[Path]:
    """Fetch the packages of an architecture into a folder; yield the libraries."""
    wanted = {package.name: package.libraries for package in _PACKAGES[machine]}
    for archive in download(SUITE, machine, lambda _: [*wanted], folder):
        name = archive.name.partition("_")[0]
        root = folder / name
        subprocess.run(["dpkg-deb", "--extract", str(archive), str(root)], check=True, timeout=HANG)
        for pattern in wanted[name]:
            yield next(path for path in sorted(root.glob(f"**/{pattern}")) if path.is_file())


def judged(library: Path, machine: str, kept: Path) -> Result:
    """Judge one library in a process of its own; write the whole result into a file."""
    options = ("--against", "code", "--json", "--why-unknown", "-j", "1")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with kept.open("wb") as output:
        command = [sys.executable, "-m", "sframe_unwind", "verify", *options, str(library)]
        subprocess.run(command, stdout=output, timeout=HANG, check=False)  # status 1: there are findings
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = json.loads(kept.read_bytes())["files"][0]["code"]
    return Result(
        library=library.name,
        machine=machine,
        instructions=code["instructions"],
        wrong=code["dwarf"]["wrong"],
        unknown=code["dwarf"]["unknown"],
        findings=len(code["findings"]),
        seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def _in_all(results: Sequence[Result]) -> Result:
    sums = [sum(column) for column in zip(*(one[2:] for one in results))]
    return Result(f"{len(results)} libraries", "all", *sums)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m lab.code.libraries", description=__doc__)
    parser.add_argument("--keep", type=Path, help="keep the libraries and the results in this folder")
    parser.add_argument("--machine", action="append", choices=sorted(_PACKAGES), help="only this architecture")
    parser.add_argument("--library", action="append", help="only the libraries with this in their names")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        return _study(options.keep or Path(temporary), options.machine or [*_PACKAGES], options.library or [""])


def _study(folder: Path, machines: Sequence[str], names: Sequence[str]) -> int:
    print("| library | machine | instructions | wrong | findings | unknown | | seconds | instructions a second |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    results = []
    for machine in machines:
        for library in libraries(machine, folder / machine):
            if any(name in library.name for name in names):
                results.append(judged(library, machine, folder / machine / f"{library.name}.json"))
                print(results[-1], flush=True)
    print(_in_all(results))
    print(f"mean of the libraries: {sum(one.share for one in results) / len(results):.2f}% unknown")
    return 0


if __name__ == "__main__":
    exit_with(main)
