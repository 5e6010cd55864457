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

The exit status is 0, or 2 if a part of the section is malformed; the other parts are printed.
"""

from __future__ import annotations

import argparse
import sys

from sframe_unwind import elf
from sframe_unwind.cli.file_name import file_name
from sframe_unwind.cli.status import CANNOT, DONE, complain_of
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.report.dump import to_json, to_text

EXAMPLES = """\
  sframe-unwind dump /usr/bin/true
  sframe-unwind dump --json libfoo.so | jq '.sections[].functions | length'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", type=file_name, help="an executable, shared library or object file")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print the dump; return the exit status."""
    status = DONE

    def report(error: FormatError) -> None:
        nonlocal status
        status = CANNOT
        sys.stdout.flush()  # keeps output and error in order on a terminal
        complain_of(options.file, error)

    try:
        sections = elf.load(options.file, lazy=False)
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT
    for piece in to_json(options.file, sections, report) if options.json else to_text(sections, report):
        sys.stdout.write(piece)
    return status
