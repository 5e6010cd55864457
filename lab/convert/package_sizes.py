"""Measures the size of SFrame made from the DWARF CFI of all files of packages.

    python -m lab.convert.package_sizes --kept FILE [--share FRACTION] [--seconds N] PACKAGE ...

The packages are those of ``tools/survey_packages.py``.  A file is measured if its SHA-256, read as a fraction of 1, is
below the share: a random sample that is the same each time.  Results are added to the file ``--kept``, and their files
are not measured again, so a larger share or another run continues.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from lab.convert import sizes as one_file
from lab.convert.sizes import MEAN, TOGETHER, Sizes, summary
from sframe_unwind import elf
from sframe_unwind.errors import SFrameError
from sframe_unwind.survey.finding import Finder, FoundFile
from sframe_unwind.translation.compact import MAX_ROWS

_CLASSES = (
    ("less than 1 KiB", 1 << 10),
    ("1 to 10 KiB", 10 << 10),
    ("10 to 100 KiB", 100 << 10),
    ("100 KiB and more", 1 << 62),
)
"""Classes of *plain* sizes: names, and the first size that is too large."""


class Kept(NamedTuple):
    """The result for a file."""

    digest: str
    """SHA-256."""
    machine: str
    path: str
    sizes: Sizes | None
    """``None``: it has no CFI to convert, or cannot be converted."""
    why: str
    """Why it has no sizes."""


def read(path: Path) -> dict[str, Kept]:
    """Return the earlier results, by digest."""
    if not path.exists():
        return {}
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        digest, machine, name, sizes, why = json.loads(line)
        found[digest] = Kept(digest, machine, name, Sizes(*sizes) if sizes else None, why)
    return found


def chosen(packages: Sequence[str], share: float) -> Iterator[FoundFile]:
    """Yield the ELF files of packages whose digest is below a share, each content once."""
    seen = set()
    finder = Finder()
    for package in packages:
        for item in finder.find(package):
            if isinstance(item, FoundFile) and item.digest not in seen and int(item.digest, 16) < share * 2**256:
                seen.add(item.digest)
                yield item


def measured(found: FoundFile) -> Kept:
    """Measure a file."""
    machine, sizes, why = "", None, ""
    try:
        with elf.parsed(BytesIO(found.data), Path(found.path).name) as binary:
            machine = binary.arch.name
            sizes, _ = one_file.measured(binary, MAX_ROWS, ())
    except SFrameError as error:
        why = str(error)
    return Kept(found.digest, machine, found.path, sizes, why)


def tables(files: Sequence[Kept]) -> Iterator[str]:
    """Yield the lines of the tables."""
    by_machine = defaultdict(list)
    for one in files:
        if one.sizes is not None:
            by_machine[one.machine].append(one.sizes)
    yield "| files | plain, bytes | shared | divided | entropy | DWARF |"
    yield "|---|--:|--:|--:|--:|--:|"
    for machine, rows in by_machine.items():
        yield from (summary(f"{machine}, {what}", rows, what == TOGETHER) for what in (TOGETHER, MEAN))
    yield ""
    yield "| files | number | least | quartile | median | quartile | most | shared, median | DWARF, median |"
    yield f"|---|{'--:|' * 8}"
    for machine, rows in by_machine.items():
        least = 0
        for name, most in _CLASSES:
            part = [row for row in rows if least <= row.plain < most]
            least = most
            if len(part) > 1:
                spread = " | ".join(f"{one:.2f}" for one in _spread(part))
                yield f"| {machine}, {name} | {len(part):,} | {spread} |"


def _spread(part: Sequence[Sizes]) -> Iterator[float]:
    """Yield the columns of the second table for files of one class."""
    divided = [row.divided / row.plain for row in part]
    yield from (min(divided), *statistics.quantiles(divided, n=4), max(divided))
    yield statistics.median(row.shared / row.plain for row in part)
    yield statistics.median(row.dwarf / row.plain for row in part)


def main() -> int:
    """Measure, and print the tables of all kept results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packages", metavar="PACKAGE", nargs="*", help="packages, directories or files")
    parser.add_argument(
        "--kept", type=Path, required=True, help="what was measured, and is; JSON, a line for each file"
    )
    parser.add_argument("--share", type=float, default=1.0, help="of all files (default: 1, all of them)")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    options = parser.parse_args()
    started = time.monotonic()
    kept = read(options.kept)
    looked_at: list[str] = []
    whole = True
    with options.kept.open("a", encoding="utf-8") as output:
        for found in chosen(options.packages, options.share):
            if found.digest not in kept:
                if options.seconds is not None and time.monotonic() - started > options.seconds:
                    whole = False
                    break
                kept[found.digest] = measured(found)
                print(json.dumps(kept[found.digest]), file=output, flush=True)
            looked_at.append(found.digest)
    files = [kept[digest] for digest in looked_at]
    print(*tables(files), sep="\n")
    without = sum(one.sizes is None for one in files)
    print(f"{len(files):,} files, {without:,} of them without sizes{'' if whole else '; not all that were chosen'}")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
