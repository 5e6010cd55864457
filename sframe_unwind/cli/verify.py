"""Compare SFrame with the DWARF CFI of the same file.

Every row of FILE's .sframe section is held against .eh_frame and .debug_frame at each
address where either changes: how to get the CFA, the return address and the frame pointer.
A directory stands for all ELF files with SFrame below it.

The exit status is 0 when all agree, 1 when something does not, 2 when a file cannot be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Union

from sframe_unwind import elf
from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain_of
from sframe_unwind.errors import FileError, SFrameError
from sframe_unwind.terminal import printable
from sframe_unwind.verify import OneSided, Verdict, verify

EXAMPLES = """\
  sframe-unwind verify ./program libfoo.so
  sframe-unwind verify --json build/ | jq '.files[].disagreements[]'
"""

Answer = Union[Verdict, str]
"""What came of one file; a text where it cannot be compared."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="a linked ELF file, or a directory of them")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="files at the same time")


def run(options: argparse.Namespace) -> int:
    """Print the comparison of each file."""
    status = DONE
    verdicts: list[Verdict] = []
    paths = list(_expand(options.files))
    for number, (path, answer) in enumerate(_answers(paths, options.jobs), 1):
        _progress(number, len(paths))
        if isinstance(answer, str):
            status = CANNOT
            complain_of(path, FileError(answer))
            continue
        if answer.disagreements and status == DONE:
            status = NOT_ALL
        if options.json:
            verdicts.append(answer)
        else:
            print("\n".join(map(printable, _lines(answer))))
    if options.json:
        json.dump({"files": [verdict.to_json() for verdict in verdicts]}, sys.stdout)
        print()
    return status


def _expand(names: list[str]) -> Iterator[str]:
    for name in names:
        if not Path(name).is_dir():
            yield name
            continue
        for path in sorted(Path(name).rglob("*")):
            if path.is_file() and not path.is_symlink() and _has_sframe(path):
                yield str(path)


def _has_sframe(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            if stream.read(4) != b"\x7fELF":
                return False
        with elf.opened(path) as file:
            return file["e_type"] != "ET_REL" and bool(elf.sframe_sections(file))
    except (SFrameError, OSError):
        return False


def _answers(paths: list[str], jobs: int) -> Iterator[tuple[str, Answer]]:
    if jobs <= 1 or len(paths) <= 1:
        yield from ((path, _answer(path)) for path in paths)
        return
    with ProcessPoolExecutor(min(jobs, len(paths))) as pool:
        yield from zip(paths, pool.map(_answer, paths))


def _answer(path: str) -> Answer:
    try:
        return verify(path)
    except SFrameError as error:
        return str(error)


def _progress(done: int, total: int) -> None:
    """Show how far the work is, where somebody watches and it takes a while."""
    if total < 10 or not sys.stderr.isatty():
        return
    width = 30
    bar = "#" * (width * done // total)
    end = "\n" if done == total else ""
    print(f"\r[{bar:<{width}}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def _lines(verdict: Verdict) -> Iterator[str]:
    count = len(verdict.disagreements)
    yield (
        f"{verdict.file}: {verdict.both} functions in both, {len(verdict.sframe_only)} in SFrame only,"
        f" {len(verdict.dwarf_only)} in DWARF only; {verdict.addresses_compared} addresses compared,"
        f" {count or 'no'} disagreement{'' if count == 1 else 's'}"
    )
    for difference in verdict.disagreements:
        place = f"{difference.address:#x} {difference.function}".rstrip()
        yield f"  {place}: {difference.what}: SFrame {difference.sframe}; DWARF {difference.dwarf}"
    yield from _one_sided("SFrame only", verdict.sframe_only)
    yield from _one_sided("DWARF only", verdict.dwarf_only)


def _one_sided(title: str, functions: tuple[OneSided, ...]) -> Iterator[str]:
    for function in functions:
        reason = f" ({function.reason})" if function.reason else ""
        yield f"  {title}: {function.start:#x} {function.function}".rstrip() + reason
