"""Show functions: each instruction with the rules of SFrame, of DWARF CFI and of the code.

Prints the disassembly of each FUNCTION of FILE.  In the margin are the rules for the CFA, the frame pointer and the
return address by SFrame and by DWARF CFI; a rule is printed where it begins:

  rsp+16   a register plus an offset
  c-16     saved in memory at CFA - 16
  (rbp-16) in memory at rbp-16
  u        unchanged, or the return address is in its register
  exp      computed by a DWARF expression
  undef    undefined: the outermost frame
  -        no rule

A line that begins with ! has a rule that differs, or that the code refutes; the lines below it name the difference, and
the instruction that made the rule wrong.  With the extra "code" (pip install pyvex 'bitstring<5' capstone), a third
column has the rule that the machine code proves; in it, ! stands for a rule that the code refutes, and ? for one that
it neither proves nor refutes.  If no table describes a function, the column has the rules that the code itself gives.
Without capstone, the instructions are shown as bytes.

FUNCTION is a symbol, or an address in a function, as for lookup: its instruction gets an arrow
(=>, !> or ?>).  Without FUNCTION, all
functions are shown, without the column of the code.

The exit status is 0, 1 if the tables differ or the code refutes one of them, 2 if a function cannot be shown.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from sframe_unwind import __version__, elf
from sframe_unwind.cli.addresses import Addresses
from sframe_unwind.cli.file_name import file_name, input_name
from sframe_unwind.cli.file_options import add_debug_arguments, found_files
from sframe_unwind.cli.in_processes import made_in_order
from sframe_unwind.cli.numbers import add_jobs
from sframe_unwind.cli.output import check_writable, write
from sframe_unwind.cli.pager import paged, pager_command
from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain_of
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.errors import FileError, MissingExtraError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import DEBUG_FOLDER
from sframe_unwind.report import frame_picture
from sframe_unwind.report.listing import Listing, to_json
from sframe_unwind.report.listing_text import COLOURED, PLAIN_STYLE, Format, to_text
from sframe_unwind.report.terminal import printable
from sframe_unwind.show.file import Options, ShownFile
from sframe_unwind.show.source_lines import SourceLines

EXAMPLES = """\
  sframe-unwind show ./program main
  sframe-unwind show ./program --at main+0x10
  sframe-unwind show libfoo.so 0x1185 --no-source
  sframe-unwind show foo.o
  sframe-unwind show libfoo.so --code --html libfoo.html
  sframe-unwind show ./program main --json | jq '.functions[].rows[].rules'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", type=input_name, help="an executable, shared library or object file")
    parser.add_argument(
        "functions", metavar="FUNCTION", nargs="*", default=[], help="main, main+0x10, 0x1185, .text+0x10"
    )
    parser.add_argument(
        "--at", metavar="ADDRESS", action="append", default=[], help="draw the frame before the instruction at ADDRESS"
    )
    code = parser.add_mutually_exclusive_group()
    code.add_argument("--code", action="store_true", help="without FUNCTION: check all functions against the code, too")
    code.add_argument("--no-code", action="store_true", help="do not check the functions against the code")
    parser.add_argument("--no-source", action="store_true", help="show no lines of source")
    add_debug_arguments(
        parser,
        f"look for the separate debug file below this folder; may be repeated (default: {DEBUG_FOLDER})",
        "the debug file if it is missing",
    )
    parser.add_argument("--bytes", action="store_true", help="show the bytes of each instruction")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="OUT", type=file_name, help="write an HTML page instead of printing")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="auto: at a terminal, without NO_COLOR"
    )
    add_jobs(parser)
    parser.add_argument("--no-pager", action="store_true", help="do not start a pager at a terminal")


class _Selection(NamedTuple):
    """The functions that the user has named."""

    parts: list[CodeRange]
    """The extents of the functions, in the order of the arguments."""
    marked: frozenset[int]
    """The addresses that get an arrow."""
    pictured: list[int]
    """The addresses at which the frame is drawn."""


def run(options: argparse.Namespace) -> int:
    """Print the functions; return the exit status."""
    if options.html:
        check_writable("--html", options.html)
    elif not options.json:
        pager_command()  # an error in it is none of the file
    try:
        with elf.opened(options.file) as binary:
            binary.check_sections()
            debug_file = _debug_file(options, binary)
            if debug_file is None:
                return _show(options, ShownFile(binary), options.file)
            has_names = debug_file.has_symbol_table and not binary.has_symbol_table
            return _show(options, ShownFile(binary, debug_file.symbols if has_names else None), debug_file.path)
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT


def _debug_file(options: argparse.Namespace, binary: elf.ElfBinary) -> ElfFile | None:
    """Return the separate debug file; ``None``: there is none, or the file itself has symbols and debug information."""
    if binary.is_object or (binary.has_symbol_table and SourceLines(options.file).exists):
        return None
    return found_files(options, binary.arch, [""]).debug_file(ElfFile(options.file), binary.build_id)


def _show(options: argparse.Namespace, file: ShownFile, with_source: str) -> int:
    """Show the functions; return the exit status.

    :param with_source: path of the file with the debug information.
    """
    selection, status = _selected(options, file)
    is_whole = not options.functions and not options.at
    parts = file.functions.all() if is_whole else selection.parts
    if is_whole and not parts:
        raise FileError("no function with SFrame or DWARF CFI; name one")
    source = None if options.no_source or is_whole else SourceLines(with_source)
    code = None
    if options.code or not (options.no_code or is_whole):
        from sframe_unwind.show.by_code import CodeColumns  # importing it takes longer than showing a function

        try:
            code = CodeColumns(file.binary, file.tables, file.functions, None if is_whole else parts)
        except MissingExtraError:
            if options.code:
                raise
    shown = Options(source if source is not None and source.exists else None, code)
    if options.html:
        return max(status, _write_page(options, file, ((part, file.listing(part, shown)) for part in parts)))
    if options.json:
        return max(status, _print_json(options, _Printed(file, shown, selection.pictured), parts))
    if not parts:  # a pager for nothing would clear the screen on which the errors are
        return status
    with paged(not options.no_pager) as is_terminal:
        by_default = is_terminal and not os.environ.get("NO_COLOR")
        colour = options.color == "always" or (options.color == "auto" and by_default)
        form = Format(
            style=COLOURED if colour else PLAIN_STYLE,
            raw=options.bytes,
            marked=frozenset(map(file.shown, selection.marked)),
        )
        return max(status, _print(form, _Printed(file, shown, selection.pictured), parts, options.jobs))


def _selected(options: argparse.Namespace, file: ShownFile) -> tuple[_Selection, int]:
    """Return what the arguments select, and the exit status: an argument that names nothing is reported."""
    addresses = Addresses(file.functions.symbols, file.binary.layout)
    parts: dict[CodeRange, None] = {}
    marked, pictured, status = set(), [], DONE
    for text, is_pictured in (*((text, False) for text in options.functions), *((text, True) for text in options.at)):
        try:
            for address in addresses.find(text):
                part = file.functions.around(address)
                parts[part] = None
                if is_pictured:
                    pictured.append(address)
                if is_pictured or address != part.start:
                    marked.add(address)
        except SFrameError as error:
            complain_of(options.file, error)
            status = CANNOT
    return _Selection(list(parts), frozenset(marked), pictured), status


def _write_page(options: argparse.Namespace, file: ShownFile, listings: Iterator[tuple[CodeRange, Listing]]) -> int:
    from sframe_unwind.show.page import page

    status = DONE

    def noted() -> Iterator[tuple[CodeRange, Listing]]:
        nonlocal status
        for part, listing in listings:
            status = max(status, _status(listing))
            yield part, listing

    write(options.html, page(options.file, file, noted(), __version__))
    return status


class _Printed(NamedTuple):
    """Makes what is printed of a function, with its exit status."""

    file: ShownFile
    options: Options
    pictured: Sequence[int]
    """The addresses at which the frame is drawn."""

    def as_text(self, part: CodeRange, form: Format) -> tuple[str, int]:
        """Return the text of a function."""
        listing = self.file.listing(part, self.options)
        lines = [*to_text(listing, form), *_frames(self.file, part, listing, self.pictured)]
        return "\n".join(lines) + "\n", _status(listing)

    def as_json(self, part: CodeRange) -> tuple[str, int]:
        """Return the JSON of a function."""
        listing = self.file.listing(part, self.options)
        found = to_json(listing)
        if frames := [_frame_json(self.file, listing, at) for at in self.pictured if part.start <= at < part.end]:
            found["frames"] = frames
        return json.dumps(found), _status(listing)


def _status(listing: Listing) -> int:
    return NOT_ALL if listing.differences else DONE


def _print_json(options: argparse.Namespace, printed: _Printed, parts: Sequence[CodeRange]) -> int:
    status, separator = DONE, ""
    sys.stdout.write(f'{{"file": {json.dumps(options.file)}, "functions": [')
    for text, found in made_in_order(printed.as_json, parts, options.jobs):
        sys.stdout.write(f"{separator}\n{text}")
        separator = ","
        status = max(status, found)
    sys.stdout.write("\n]}\n")
    return status


def _frame_json(file: ShownFile, listing: Listing, at: int) -> dict[str, object]:
    refuted = listing.refuted(file.shown(at))
    return {"address": file.shown(at), "pictures": [frame_picture.to_json(one, refuted) for one in file.pictures(at)]}


def _print(form: Format, printed: _Printed, parts: Sequence[CodeRange], jobs: int) -> int:
    status, separator = DONE, ""
    for text, found in made_in_order(partial(printed.as_text, form=form), parts, jobs):
        sys.stdout.write(separator + text)
        separator = "\n"
        status = max(status, found)
    return status


def _frames(file: ShownFile, part: CodeRange, listing: Listing, pictured: Sequence[int]) -> Iterator[str]:
    for at in pictured:
        if part.start <= at < part.end:
            found = file.pictures(at)
            name = file.functions.name(at)
            place = f"the frame before {file.functions.shown(at)}" + (f" <{printable(name)}>" if name else "")
            for picture in found:
                title = frame_picture.heading(place, picture, listing.refuted(file.shown(at)))
                yield from ("", title, *frame_picture.lines(picture))
            if not found:
                yield from ("", f"{place}: no rule that computes the CFA from a register")
