"""Find the function and the row for addresses.

For each ADDRESS in FILE, prints the function that contains it and the row that applies there, in the notation of
readelf --sframe and in words.  An address is a decimal number, a hexadecimal number with 0x, or a symbol of the file
with or without an offset.  Numbers are addresses in the file, not in a process that has loaded it.

The exit status is 0, 1 if SFrame does not cover an address, or 2 if the file cannot be read.
"""

from __future__ import annotations

import argparse
import re
import sys

from sframe_unwind import elf
from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain_of
from sframe_unwind.elf.symbols import Symbols, read_symbols
from sframe_unwind.errors import FileError, SFrameError
from sframe_unwind.report.notation import attributes, cells_of, describe_rule
from sframe_unwind.report.terminal import printable
from sframe_unwind.sframe.constants import PauthKey, PcType
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import NO_FUNCTION, Function, Match, Miss

EXAMPLES = """\
  sframe-unwind lookup ./program 0x1185
  sframe-unwind lookup ./program main main+0x10
"""

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="an executable or shared library")
    parser.add_argument("addresses", metavar="ADDRESS", nargs="+", help="0x1185, 4485, main or main+0x10")


def run(options: argparse.Namespace) -> int:
    """Print the lookup result for each address; return the exit status."""
    status = DONE
    try:
        sections = elf.load(options.file)
        symbols = read_symbols(options.file)
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT
    for text in options.addresses:
        try:
            for address in _addresses(text, symbols):
                covered, lines = _look_up(sections, symbols, address)
                sys.stdout.write("\n".join(lines) + "\n")
                status = max(status, DONE if covered else NOT_ALL)
        except SFrameError as error:
            complain_of(options.file, error)
            status = CANNOT
    return status


def _addresses(text: str, symbols: Symbols) -> list[int]:
    """Return the addresses that an argument stands for: several if several symbols have the name.

    :raises FileError: the argument is neither a number nor a symbol.
    """
    if _NUMBER.fullmatch(text):
        return [_number(text)]
    if found := symbols.addresses(text):
        return found
    name, _, offset = text.rpartition("+")
    if name and _NUMBER.fullmatch(offset) and (found := symbols.addresses(name)):
        return [address + _number(offset) for address in found]
    raise FileError(f"{text}: neither an address nor a symbol of the file")


def _number(text: str) -> int:
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


def _look_up(sections: list[Section], symbols: Symbols, address: int) -> tuple[bool, list[str]]:
    """Return whether SFrame covers the address, and the lines to print."""
    found: Match | Miss = NO_FUNCTION
    for section in sections:
        found = section.lookup(address)
        if found.function:
            break
    name = symbols.name(address)
    title = f"{address:#x}: {printable(name) if name else '(no symbol)'}"
    if found.function is None:
        return False, [f"{title}: not covered: {found.reason}"]
    lines = [title, f"    function {_extent(found.function)}"]
    if isinstance(found, Miss):
        return False, [*lines, f"    not covered: {found.reason}"]
    return True, [*lines, f"    row {_row(found)}", *(f"    {line}" for line in _in_words(found))]


def _extent(function: Function) -> str:
    fde = function.fde
    repetition = f", repeats every {fde.repetition_size} bytes" if fde.pc_type is PcType.MASK else ""
    return f"{function.start:#x}..{function.end:#x}, {fde.size} bytes{attributes(fde)}{repetition}"


def _row(match: Match) -> str:
    if match.function.fde.pc_type is PcType.MASK:
        start = f"+{match.row_start:#x}"
    else:
        start = f"{match.function.start + match.row_start:#x}"
    cells = cells_of(match)
    return f"{start}: {cells}" if cells.ra_undefined else f"{start}: CFA {cells.cfa}, FP {cells.fp}, RA {cells.ra}"


def _in_words(match: Match) -> list[str]:
    key = match.function.fde.pauth_key if match.rule.ra_signed else PauthKey.A
    return describe_rule(match.rule, match.function.table.arch, key)
