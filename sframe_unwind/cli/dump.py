"""Show all that an SFrame section says.

Prints every function and row of FILE's .sframe section in the notation of
readelf --sframe, for versions 1 to 3 alike:

  sp+16 fp+16 r10+0  a register plus an offset
  c-16               saved in memory at CFA - 16
  (fp-16)            in memory at fp-16
  u                  not mentioned: unchanged, or the return address is in its register
  f                  at the fixed offset from the CFA that the header gives
  U                  a padding word in the place of the return address
  [s]                the return address is signed
  RA undefined       the outermost frame

The exit status is 0, or 2 when something cannot be read; the rest is printed all the same.
"""

from __future__ import annotations

import argparse
import sys

from sframe_unwind import elf
from sframe_unwind.cli.status import CANNOT, DONE, complain_of
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.report.dump import to_json, to_text

EXAMPLES = """\
  sframe-unwind dump /usr/bin/true
  sframe-unwind dump --json libfoo.so | jq '.sections[].functions | length'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("file", metavar="FILE", help="an executable, shared library or object file")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print the dump."""
    status = DONE

    def report(error: FormatError) -> None:
        nonlocal status
        status = CANNOT
        sys.stdout.flush()  # so that a terminal shows the complaint where it belongs
        complain_of(options.file, error)

    try:
        sections = elf.load(options.file, lazy=False)
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT
    for piece in to_json(options.file, sections, report) if options.json else to_text(sections, report):
        sys.stdout.write(piece)
    return status
