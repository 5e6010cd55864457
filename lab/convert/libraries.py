"""Makes SFrame for libraries of the system from their DWARF CFI, and prints coverage and size.

    python -m lab.convert.libraries [--count N] [FILE ...]

Each copy is verified, and loaded in another process if this machine can.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lab.cfi.libraries import FOLDERS, libraries
from sframe_unwind.convert.report import Report
from sframe_unwind.convert.source import DWARF
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe
from sframe_unwind.verify import verify
from sframe_unwind.verify.verdict import Verdict
from tests.hanging import HANG

_SECONDS = HANG
FIRST = ("libc.so.6", "libstdc++.so.6")
PYTHON = Path("/usr/bin/python3.11")


class Converted(NamedTuple):
    """The result for one file."""

    path: Path
    report: Report
    verdict: Verdict
    loads: bool | None
    """Whether the copy can be loaded; ``None``: it is a program, or the original cannot be loaded alone either."""
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether the copy has no errors."""
        named = {loss.start for loss, _ in self.report.losses}
        return self.verdict.agrees and self.verdict.dwarf_only == len(named) and self.loads is not False

    def __str__(self) -> str:
        report, lost = self.report, len(self.report.losses)
        of_code = 100 * report.code_bytes / (report.code_bytes + sum(n.loss.end - n.loss.start for n in report.losses))
        return (
            f"| `{self.path.name}` | {report.functions:,} of {report.functions + lost:,} | {of_code:.2f} % |"
            f" {report.size:,} | {report.source_size:,} | {report.size / report.source_size:.2f} |"
            f" {self.verdict.addresses_compared:,} |"
        )


def convert(path: Path) -> Converted:
    """Convert one file, verify the copy, and load it."""
    with tempfile.TemporaryDirectory() as folder:
        output, started = Path(folder, path.name), time.monotonic()
        report = convert_to_sframe(path, output, Wanted(source=DWARF))
        seconds = time.monotonic() - started
        loads = can_load(output) if ".so" in path.name and can_load(path) else None
        return Converted(path, report, verify(output), loads, seconds)


def can_load(path: Path) -> bool:
    """Return whether the dynamic linker loads a library."""
    code = f"import ctypes; ctypes.CDLL({str(path.resolve())!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=_SECONDS, check=False)
    return done.returncode == 0


def system_files(count: int) -> Iterator[Path]:
    """Yield the C library, the C++ library, Python, and libraries of all sizes of their CFI."""
    named = [(FOLDERS["amd64"] / name).resolve() for name in FIRST] + [PYTHON] * PYTHON.exists()
    yield from named
    others = [item.path for item in libraries("amd64", count + len(named)) if item.path not in named]
    yield from others[-count:]


def main() -> int:
    """Convert all and print a table; return exit status 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, help="files to convert instead")
    parser.add_argument("--count", type=int, default=30, help="libraries besides those named in this file")
    options = parser.parse_args()
    print("| file | functions | of their code | `.sframe` | `.eh_frame` | ratio | addresses compared |")
    print("|---|---|---|---|---|---|---|")
    done = []
    for path in options.files or system_files(options.count):
        done.append(convert(path))
        print(done[-1], flush=True)
    size, source = sum(one.report.size for one in done), sum(one.report.source_size for one in done)
    disagreements = sum(len(one.verdict.disagreements) for one in done)
    print(f"{len(done)} files, {sum(one.report.functions for one in done):,} functions, {disagreements} disagreements")
    print(f".sframe has {size / source:.2f} times the bytes of .eh_frame; {sum(one.seconds for one in done):.1f} s")
    for one in done:
        for named in one.report.losses:
            print(f"{one.path}: left out: {named}")
    wrong = [one.path for one in done if not one.is_right]
    for path in wrong:
        print(f"{path}: not right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
