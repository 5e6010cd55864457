"""Show the contents of an SFrame section.

Prints every function and row of FILE's .sframe section in the notation of
readelf --sframe, for versions 1 to 3:

  sp+16 fp+16 r10+0  a register plus an offset
  c-16               saved in memory at CFA - 16
  (fp-16)            in memory at fp-16
  u                  no data: unchanged, or the return address is in its register
  f                  saved at the fixed offset from the CFA that the header gives
  U                  padding: the return address is not tracked
  [s]                the return address is signed
  RA undefined       the outermost frame

FUNCTION is a symbol, or an address in a function, as for lookup: only these functions are printed.

The exit status is 0, 1 if SFrame does not cover a FUNCTION, or 2 if a part of the section is malformed; the
other parts are printed.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left
from collections.abc import Iterator

from sframe_unwind import elf
from sframe_unwind.cli.file_name import input_name
from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain, complain_of
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.dump import to_text
from sframe_unwind.sframe.table import Table

EXAMPLES = """\
  sframe-unwind dump /usr/bin/true
  sframe-unwind dump ./program main 0x1185
  sframe-unwind dump --json libfoo.so | jq '.sections[].functions | length'
"""


_AT_ONCE = 16
"""Number of pieces to write at once: one by one, functions of half a kilobyte take more than twice the time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", type=input_name, help="an executable, shared library or object file")
    parser.add_argument(
        "functions", metavar="FUNCTION", nargs="*", default=[], help="main, 0x1185, or .text+0x10 in an object file"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print the dump; return the exit status."""
    status, pending = DONE, list[str]()

    def write() -> None:
        sys.stdout.write("".join(pending))
        pending.clear()

    def report(error: FormatError) -> None:
        nonlocal status
        status = CANNOT
        write()
        sys.stdout.flush()  # keeps output and error in order on a terminal
        complain_of(options.file, error)

    try:
        sections = elf.load(options.file, lazy=False)
        chosen = _chosen(options) if options.functions else None
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT
    only = None if chosen is None else chosen.numbers
    if options.json:
        from sframe_unwind.report.dump_json import to_json  # the text needs no JSON

        pieces = to_json(options.file, sections, report, only)
    else:
        pieces = to_text(sections, report, only)
    try:
        for piece in pieces:
            pending.append(piece)
            if len(pending) == _AT_ONCE:
                write()
    finally:
        write()
    for text in () if chosen is None else chosen.not_covered:
        complain(f"{options.file}: SFrame does not cover {text}")
        status = max(status, NOT_ALL)
    return status


class _Chosen(NamedTuple):
    """What the arguments name."""

    numbers: dict[int, list[int]]
    """The numbers of the functions, by the number of their table in the file."""
    not_covered: list[str]
    """The arguments for which there is no function."""


def _chosen(options: argparse.Namespace) -> _Chosen:
    """Return the functions that the arguments name.

    The addresses are those of the layout, in which sections of object files do not overlap; the numbers are the same.

    :raises SFrameError: an argument names nothing.
    """
    from sframe_unwind.cli.addresses import Addresses  # without a FUNCTION, no symbols are read
    from sframe_unwind.elf.symbols import Symbols

    with elf.opened(options.file) as binary:
        addresses = Addresses(Symbols([*binary.symbols, *binary.stubs]), binary.layout)
        wanted = {text: addresses.find(text) for text in options.functions}
        every = sorted({address for found in wanted.values() for address in found})
        tables = [table for section in binary.sframe for table in section.tables]
        numbers: dict[int, list[int]] = {}
        covered: set[int] = set()
        for place, table in enumerate(tables):
            numbers[place] = []
            for number, inside in _covering(table, every):
                numbers[place].append(number)
                covered.update(inside)
        return _Chosen(numbers, [text for text, found in wanted.items() if covered.isdisjoint(found)])


def _covering(table: Table, addresses: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield the numbers of the functions that contain an address, and the addresses."""
    for number, (start, size) in enumerate(zip(*table.extents())):
        if inside := addresses[bisect_left(addresses, start) : bisect_left(addresses, start + size)]:
            yield number, inside
