"""The option of commands for whole files that selects functions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sframe_unwind.address import Range
from sframe_unwind.cli.addresses import Addresses
from sframe_unwind.elf import ElfBinary


def add_functions(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--function",
        dest="functions",
        metavar="FUNCTION",
        action="append",
        default=[],
        help="only this function: main, main+0x10, 0x1185, .text+0x10; may be repeated",
    )


def extents(binary: ElfBinary, functions: Sequence[str]) -> tuple[Range, ...] | None:
    """Return start and end address of each function that the option names; ``None``: it was not given.

    :raises FileError: the file has no such function.
    """
    if not functions:
        return None
    from sframe_unwind.show.functions import Functions  # it imports the interpreter of machine code
    from sframe_unwind.show.tables import Tables

    found = Functions(binary, Tables(binary))
    addresses = Addresses(found.symbols, binary.layout)
    parts = (found.around(address) for text in functions for address in addresses.find(text))
    return tuple((part.start, part.end) for part in parts)
