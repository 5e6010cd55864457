"""Asks readers for the same addresses in a section and in the compacted one, and measures how long libsframe looks.

    python -m lab.readers.compacted [--addresses N] [FILE ...]

Both sections are made from the DWARF CFI of a file: version 3, and version 2 for the readers of that.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.cfi.libraries import FOLDERS
from lab.convert.libraries import FIRST, PYTHON
from lab.readers.readers import available, libsframe
from lab.readers.running import Request, ask
from sframe_unwind.convert.source import DWARF
from sframe_unwind.convert.to_sframe import SECTION, Wanted, convert_to_sframe
from sframe_unwind.sframe.section import Section
from sframe_unwind.translation.compact import MAX_ROWS
from tests.hanging import HANG

_TIMER = Path(__file__).parent / "adapters" / "lookup_time.c"
_SECONDS = HANG
_ROUNDS = 15


class Pair(NamedTuple):
    """Two sections for the same code, at the same address."""

    address: int
    plain: bytes
    compact: bytes


def sections(path: Path, version: int) -> Pair:
    """Return the section of a file, and the compacted one."""
    made: list[bytes] = []
    address = None
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "section")
        for max_rows in (None, MAX_ROWS):
            # With the name of a reader, rows are shared for big-endian machines too.
            wanted = Wanted(
                version=version, consumers=("spec",), form=SECTION, source=DWARF, address=address, max_rows=max_rows
            )
            address = convert_to_sframe(path, output, wanted).address
            made.append(output.read_bytes())
    assert address is not None  # there were two rounds
    return Pair(address, *made)


def addresses(pair: Pair, count: int) -> list[int]:
    """Return addresses of code that the plain section describes; each run gives the same ones."""
    extents = [(one.start, one.end) for one in Section(pair.plain, pair.address).functions() if one.fde.size]
    chosen = random.Random(0)
    picked = chosen.choices(extents, [end - start for start, end in extents], k=count)
    return [chosen.randrange(start, end) for start, end in picked]


def nanoseconds(timer: Path, pair: Pair, pcs: Sequence[int]) -> tuple[float, float]:
    """Return how long libsframe 2.47 takes to find a row in each section."""
    library = libsframe("2.47").command[-1]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("plain", "compact")]
        paths[0].write_bytes(pair.plain)
        paths[1].write_bytes(pair.compact)
        command = [str(timer), library, hex(pair.address), *map(str, paths), str(_ROUNDS)]
        lines = "\n".join(map(str, pcs))
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=_SECONDS, check=True)
    one, other = map(float, done.stdout.split())
    return one, other


def main() -> int:
    """Compare, and print a line for each file; exit status 1 if a reader gives another answer for one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    default = [*(FOLDERS["amd64"] / name for name in (*FIRST, "libcrypto.so.3")), PYTHON, Path("/usr/bin/perf")]
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, default=default)
    parser.add_argument("--addresses", type=int, default=10000, help="in each file (default: 10,000)")
    options = parser.parse_args()
    readers, missing = available()
    print(*(f"not run: {why}" for why in missing), sep="\n", end="\n" if missing else "")
    differ = False
    print("| file | readers with the same answers | lookup, plain | compact | ratio |")
    print("|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        timer = Path(folder, "lookup_time")
        subprocess.run(["gcc", "-O2", "-o", str(timer), str(_TIMER)], check=True, timeout=_SECONDS)
        for path in options.files:
            same = []
            for version in (3, 2):
                pair = sections(path, version)
                pcs = addresses(pair, options.addresses)
                for reader in (one for one in readers if version in one.versions):
                    plain, compact = ask(
                        reader, [Request(data, pair.address, pcs) for data in (pair.plain, pair.compact)]
                    )
                    if "rows" not in plain:  # as libsframe 2.44, which does not know the flag of errata 1
                        continue
                    differ |= plain != compact
                    same.append(reader.name if plain == compact else f"NOT {reader.name}")
                if version == 3:
                    times = nanoseconds(timer, pair, pcs)
            ratio = times[1] / times[0]
            names = ", ".join(dict.fromkeys(same))
            print(f"| `{path.name}` | {names} | {times[0]:.0f} ns | {times[1]:.0f} ns | {ratio:.2f} |", flush=True)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
