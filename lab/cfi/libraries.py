"""Compares CFI of real libraries of three machines, and of the samples of every ABI, with pyelftools and readelf.

    python -m lab.cfi.libraries [--jobs N] [--limit N]

It takes some minutes; the tests do the same for a few of the libraries.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from lab.cfi.comparison import Account, compare
from sframe_unwind import elf
from sframe_unwind.errors import SFrameError
from tests.samples.build import build, toolchain
from tests.samples.catalogue import ABIS, all_builds

FOLDERS = {
    "amd64": Path("/usr/lib/x86_64-linux-gnu"),
    "aarch64": Path("/usr/aarch64-linux-gnu/lib"),
    "s390x": Path("/usr/s390x-linux-gnu/lib"),
}
COUNTS = {"amd64": 30, "aarch64": 12, "s390x": 12}
"""Number of libraries of each machine."""
_MAX_SIZE = 1 << 20
"""Maximum size of ``.eh_frame`` in bytes: pyelftools takes a minute for so many."""


class Item(NamedTuple):
    """One file."""

    abi: str
    path: Path


def libraries(abi: str, count: int) -> list[Item]:
    """Return libraries, evenly chosen from the smallest to the largest CFI within the limit."""
    sizes = {}
    for path in sorted(FOLDERS[abi].glob("*.so*")):
        if path.is_file() and not path.is_symlink() and (size := _cfi_size(path)):
            sizes[path] = size
    ordered = sorted(sizes, key=lambda path: (sizes[path], path))
    step = max((len(ordered) - 1) / max(count - 1, 1), 1)
    chosen = dict.fromkeys(ordered[min(round(step * number), len(ordered) - 1)] for number in range(count))
    return [Item(abi, path) for path in chosen]


def _cfi_size(path: Path) -> int:
    """Return the size in bytes of a library's ``.eh_frame``; 0: there is none, or it is too large."""
    try:
        with elf.opened(path) as binary:
            size = binary.size_of(".eh_frame")
    except SFrameError:
        return 0  # a linker script
    return size if size <= _MAX_SIZE else 0


def samples() -> Iterator[Item]:
    """Yield a build of each sample for each ABI and variant."""
    seen = set()
    for wanted in all_builds():
        key = wanted.name, wanted.abi, wanted.variant
        if key not in seen:
            seen.add(key)
            yield Item(wanted.abi, build(wanted.name, wanted.abi, wanted.version, wanted.variant, wanted.pie))


def account(item: Item) -> tuple[Item, Account]:
    """Compare one file."""
    return item, compare(item.path, toolchain(item.abi, ABIS[item.abi].versions[-1]) / "readelf")


def main() -> int:
    """Compare all; return exit status 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2, help="files at the same time (default: 2)")
    parser.add_argument("--limit", type=int, help="at most so many libraries of each machine, and no samples")
    options = parser.parse_args()
    started = time.monotonic()
    counts = {abi: min(count, options.limit or count) for abi, count in COUNTS.items()}
    items = [item for abi, count in counts.items() for item in libraries(abi, count)]
    found = len(items)
    items += [] if options.limit else list(samples())
    with ProcessPoolExecutor(options.jobs) as pool:
        results = list(pool.map(account, items))
    return _report(results, found, time.monotonic() - started)


def _report(results: list[tuple[Item, Account]], count: int, seconds: float) -> int:
    for item, result in results[:count]:
        counted = f"{result.functions:,} functions, {result.rows:,} rows"
        print(f"{item.path}: {counted}, {len(result.differences)} differences")
    print(f"{count} libraries, {len(results) - count} samples, {seconds:.0f} s")
    accounts = [result for _, result in results]
    for name, value in (("functions", sum(a.functions for a in accounts)), ("rows", sum(a.rows for a in accounts))):
        print(f"{value:10,} {name}")
    for reason, number in collections.Counter(reason for a in accounts for reason in a.excepted).items():
        print(f"{number:10,} not held against pyelftools: {reason}")
    differences = [line for a in accounts for line in a.differences]
    print("\n".join([f"{len(differences):10,} differences", *differences]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
