"""Make SFrame from DWARF CFI, or from SFrame of another version.

Makes an SFrame section of what FILE, an executable or a shared library, says of its functions, and
writes it to OUT: as a copy of FILE with the section loaded, which runs as FILE does; as the bytes
of the section; or as an object file.  The source is SFrame where FILE has any, else DWARF CFI.

Before OUT gets its name, the result is decoded and each of its rows is compared with each row of
the source, at each address where either changes.  A function that cannot be expressed is left out
and named with the reason.

The exit status is 0 if nothing was left out, 1 if something was, 2 if nothing could be written.
"""

from __future__ import annotations

import argparse
import json
import sys

from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain_of
from sframe_unwind.convert.consumers import CONSUMERS, NEWEST
from sframe_unwind.convert.source import DWARF, SFRAME
from sframe_unwind.convert.to_sframe import COPY, FORMS, Wanted, convert_to_sframe
from sframe_unwind.errors import SFrameError
from sframe_unwind.report.terminal import printable

EXAMPLES = """\
  sframe-unwind convert /lib/x86_64-linux-gnu/libc.so.6 -o lib/libc.so.6
  sframe-unwind convert --version 2 --for glibc ./program -o program-v2
  sframe-unwind convert --as section --json libfoo.so -o libfoo.sframe | jq '.losses[]'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", metavar="FILE", help="an executable or a shared library")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write")
    parser.add_argument("--version", type=int, choices=(2, 3), default=NEWEST, help="of SFrame (default: 3)")
    parser.add_argument("--as", dest="form", choices=FORMS, default=COPY, help="what to write (default: copy)")
    parser.add_argument("--from", dest="source", choices=(DWARF, SFRAME), help="the unwind data to convert")
    parser.add_argument(
        "--for", dest="consumers", action="append", default=[], choices=CONSUMERS,
        help="a reader that must accept the result; may be given several times",
    )
    parser.add_argument(
        "--address", type=_address, help="where the section will be loaded (default: behind FILE's segments)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _address(text: str) -> int:
    address = int(text, 0)
    if not 0 <= address < 1 << 64:
        raise argparse.ArgumentTypeError(f"{text}: not an address")
    return address


def run(options: argparse.Namespace) -> int:
    """Convert, and print what was made; return the exit status."""
    wanted = Wanted(options.version, tuple(options.consumers), options.form, options.source, options.address)
    try:
        report = convert_to_sframe(options.file, options.output, wanted)
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT
    if options.json:
        json.dump(report.to_json(), sys.stdout)
        print()
    else:
        print("\n".join(map(printable, report.lines())))
    return DONE if report.is_whole else NOT_ALL
