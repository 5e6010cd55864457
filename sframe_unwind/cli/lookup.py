"""Find the function and the row for addresses.

For each ADDRESS in FILE, prints the function that contains it and the row that applies there, in the notation of
readelf --sframe and in words.  An address is a decimal number, a hexadecimal number with 0x, or a symbol of the file
with or without an offset.  Numbers are addresses in the file, not in a process that has loaded it.  In an object file,
where each section begins at 0, an address is a symbol, or a section with or without an offset (.text.main+0x10).
If - is the only ADDRESS, the addresses are the lines of standard input, and each gets one line.

The exit status is 0, 1 if SFrame does not cover an address, or 2 if the file cannot be read.
"""

from __future__ import annotations

import argparse
import sys

from sframe_unwind import elf
from sframe_unwind.cli.addresses import Addresses
from sframe_unwind.cli.file_name import input_name
from sframe_unwind.cli.lookup_lines import Lines, look_up
from sframe_unwind.cli.standard_input import arriving_lines
from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain_of
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import SFrameError, counted
from sframe_unwind.report.notation import attributes, cells_of, describe_rule
from sframe_unwind.report.terminal import printable
from sframe_unwind.sframe.constants import PauthKey, PcType
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function, Match, Miss

EXAMPLES = """\
  sframe-unwind lookup ./program 0x1185
  sframe-unwind lookup ./program main main+0x10
  sframe-unwind lookup ./main.o .text+0x10
  sframe-unwind lookup ./program - < addresses.txt
"""

STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", type=input_name, help="an executable, shared library or object file")
    parser.add_argument("addresses", metavar="ADDRESS", nargs="+", help="0x1185, 4485, main, main+0x10, or -")


def run(options: argparse.Namespace) -> int:
    """Print the lookup result for each address; return the exit status."""
    try:
        with elf.opened(options.file) as binary:
            few = options.addresses != [STDIN]  # for many lookups, the whole section is read at once
            sections = binary.read_sframe(binary.relocations, options.file if few else None)
            layout, symbols = binary.layout, Symbols([*binary.symbols, *binary.stubs])
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT
    addresses = Addresses(symbols, layout)
    if options.addresses == [STDIN]:
        return _from_standard_input(options.file, Lines(sections, symbols, addresses))
    status = DONE
    for text in options.addresses:
        try:
            for address in addresses.find(text):
                covered, lines = _explained(sections, symbols, addresses, address)
                sys.stdout.write("\n".join(lines) + "\n")
                status = max(status, DONE if covered else NOT_ALL)
        except SFrameError as error:
            complain_of(options.file, error)
            status = CANNOT
    return status


def _from_standard_input(file: str, lines: Lines) -> int:
    """Print a line for each address in standard input; return the exit status."""
    status = DONE
    for texts in arriving_lines():
        plain = lines.plain(texts)
        said: list[str] = []
        for text in texts:
            line = plain.get(text)
            if line is not None:
                said.append(line)
                continue
            try:
                found = lines.single(text.strip())
            except SFrameError as error:
                sys.stdout.write("".join(said))
                sys.stdout.flush()  # keeps output and errors in order
                said.clear()
                complain_of(file, error)
                status = CANNOT
            else:
                said += [line for line, _ in found]
                status = max(status, DONE if all(covered for _, covered in found) else NOT_ALL)
        sys.stdout.write("".join(said))
        sys.stdout.flush()
    return status


def _explained(sections: list[Section], symbols: Symbols, addresses: Addresses, address: int) -> tuple[bool, list[str]]:
    """Return whether SFrame covers the address, and the lines to print."""
    found = look_up(sections, address)
    name = symbols.name(address)
    title = f"{addresses.shown(address)}: {printable(name) if name else '(no symbol)'}"
    if isinstance(found, Miss) and found.function is None:
        return False, [f"{title}: not covered: {found.reason}"]
    assert found.function is not None
    lines = [title, f"    function {_extent(found.function, addresses)}"]
    if isinstance(found, Miss):
        return False, [*lines, f"    not covered: {found.reason}"]
    return True, [*lines, f"    row {_row(found, addresses)}", *(f"    {line}" for line in _in_words(found))]


def _extent(function: Function, addresses: Addresses) -> str:
    fde = function.fde
    repetition = f", repeats every {counted(fde.repetition_size, 'byte')}" if fde.pc_type is PcType.MASK else ""
    extent = f"{addresses.shown(function.start)}..{addresses.offset(function.start) + fde.size:#x}"
    return f"{extent}, {counted(fde.size, 'byte')}{attributes(fde)}{repetition}"


def _row(match: Match, addresses: Addresses) -> str:
    if match.function.fde.pc_type is PcType.MASK:
        start = f"+{match.row_start:#x}"
    else:
        start = addresses.shown(match.function.start + match.row_start)
    cells = cells_of(match)
    return f"{start}: {cells}" if cells.ra_undefined else f"{start}: CFA {cells.cfa}, FP {cells.fp}, RA {cells.ra}"


def _in_words(match: Match) -> list[str]:
    key = match.function.fde.pauth_key if match.rule.ra_signed else PauthKey.A
    return describe_rule(match.rule, match.function.table.arch, key)
