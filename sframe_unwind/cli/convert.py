"""Make SFrame from DWARF CFI or another version of SFrame, or DWARF CFI from SFrame.

--to sframe makes an SFrame section from the unwind data of FILE, an executable or a shared library,
and writes it to OUT: as a copy of FILE with the section loaded, which runs as FILE does; as the bytes
of the section; or as an object file.  The source is the SFrame of FILE, or the DWARF CFI if FILE has
no SFrame or was rewritten after linking.  For an object file, or an archive of object files, OUT is a
copy with relocatable SFrame, which GNU ld 2.46 and later link with the SFrame of other objects.

--to debug_frame makes DWARF CFI of the functions that only SFrame describes, and writes it as a
separate debug file, which debuggers find by FILE's build ID, or as a copy of FILE with the section.

Before OUT gets its name, the result is decoded, and its rules are compared with those of the source
at each address where either changes.  A function that cannot be expressed is left out and named with
the reason.

The exit status is 0 if nothing was left out, 1 if something was, 2 if nothing could be written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sframe_unwind.cli.file_name import file_name, input_name
from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain, complain_of
from sframe_unwind.convert import to_debug_frame, to_sframe
from sframe_unwind.convert.consumers import READERS
from sframe_unwind.convert.kinds import DWARF, SFRAME, SOURCES
from sframe_unwind.convert.report import Report
from sframe_unwind.convert.static_library import convert_archive, is_archive
from sframe_unwind.errors import FileError, SFrameError
from sframe_unwind.report.terminal import printable
from sframe_unwind.translation.compact import MAX_ROWS
from sframe_unwind.translation.to_sframe import WRITTEN

EXAMPLES = """\
  sframe-unwind convert /lib/x86_64-linux-gnu/libc.so.6 -o lib/libc.so.6
  sframe-unwind convert libfoo.so -o small/libfoo.so --compact
  sframe-unwind convert libold.a -o libold-sframe.a
  sframe-unwind convert --for glibc ./program -o program-v2
  sframe-unwind convert --as section --json libfoo.so -o libfoo.sframe | jq '.losses[]'
  sframe-unwind convert --to debug_frame ./program -o program.debug
"""

_DEBUG_FRAME = "debug_frame"
_FORMS = {SFRAME: to_sframe.FORMS, _DEBUG_FRAME: to_debug_frame.FORMS}
_ONLY_FOR = {
    "version": SFRAME,
    "source": SFRAME,
    "consumers": SFRAME,
    "address": SFRAME,
    "compact": SFRAME,
    "all": _DEBUG_FRAME,
}
_MOST_ROWS = 255
_NAMES = {"source": "from", "consumers": "for"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    forms = list(dict.fromkeys(form for known in _FORMS.values() for form in known))
    parser.add_argument(
        "file",
        metavar="FILE",
        type=input_name,
        help="an executable, a shared library, an object file or an archive of them",
    )
    parser.add_argument("-o", "--output", metavar="OUT", type=file_name, required=True, help="the file to write")
    parser.add_argument("--to", choices=_FORMS, default=SFRAME, help="what to make (default: sframe)")
    parser.add_argument(
        "--as", dest="form", choices=forms, help="what to write (default: copy for sframe, debug-file for debug_frame)"
    )
    parser.add_argument("--version", type=int, choices=WRITTEN, help="of SFrame (default: the newest that is read)")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="KIND",
        type=_kind,
        help=f"what to make SFrame from: {', '.join(SOURCES[:-1])} (the machine code), or {SOURCES[-1]} (the code of"
        " functions that the CFI does not describe, or describes wrongly or in a way that SFrame cannot express)",
    )
    parser.add_argument(
        "--for",
        dest="consumers",
        action="append",
        choices=tuple(READERS),
        help="a reader that must accept the SFrame; may be given several times",
    )
    parser.add_argument(
        "--address", type=_address, help="where a section or object will be loaded (default: after FILE's segments)"
    )
    parser.add_argument(
        "--all", action="store_true", default=None, help="make DWARF CFI also of functions for which FILE has some"
    )
    parser.add_argument(
        "--compact",
        metavar="K",
        nargs="?",
        type=_rows,
        const=MAX_ROWS,
        help="make the SFrame smaller: share equal rows, and describe functions next to each other by one entry of at"
        f" most K rows (default: {MAX_ROWS})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def _kind(text: str) -> str:
    found = text.replace("cfi", DWARF)
    if found not in SOURCES:
        raise argparse.ArgumentTypeError(f"{text}: expected {', '.join(SOURCES[:-1])} or {SOURCES[-1]}")
    return found


def _address(text: str) -> int:
    address = int(text, 0)
    if not 0 <= address < 1 << 64:
        raise argparse.ArgumentTypeError(f"{text}: not an address")
    return address


def spelled_out(arguments: Sequence[str]) -> list[str]:
    """Return arguments in which ``--compact`` has a value: argparse would take the next argument, such as FILE."""
    return [f"--compact={MAX_ROWS}" if argument == "--compact" else argument for argument in arguments]


def _rows(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_ROWS:
        raise argparse.ArgumentTypeError(f"{text}: not a number of rows from 1 to {_MOST_ROWS}, as in --compact=16")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Convert, and print the reports; return the exit status."""
    forms = _FORMS[options.to]
    if options.form is not None and options.form not in forms:
        complain(f"convert: --as {options.form} with --to {options.to}, expected {' or '.join(forms)}")
        return CANNOT
    for option, to in _ONLY_FOR.items():
        if getattr(options, option) is not None and options.to != to:
            complain(f"convert: --{_NAMES.get(option, option)} has no meaning with --to {options.to}")
            return CANNOT
    try:
        if _replaces_archive(options.file, options.output):
            complain(f"convert: -o {options.output}: an archive, which is not overwritten by what is made of one file")
            return CANNOT
        reports, of_archive = _convert(options, options.form or forms[0])
    except SFrameError as error:
        complain_of(options.file, error)
        return CANNOT
    if options.json:
        found = [report.to_json() for report in reports]
        json.dump({"members": found} if of_archive else found[0], sys.stdout)
        print()
    else:
        print("\n".join(printable(line) for report in reports for line in report.lines()))
    return DONE if all(report.is_whole for report in reports) else NOT_ALL


def _replaces_archive(path: str, output: str) -> bool:
    """Return whether an archive would be lost: its members, such as FILE itself, would not be in OUT.

    :raises FileError: FILE cannot be read.
    """
    if is_archive(path):
        return False
    try:
        return Path(output).is_file() and is_archive(output)  # a FIFO would be waited for
    except (OSError, FileError):  # it can perhaps be replaced, but not read, or it cannot be written either
        return False


def _convert(options: argparse.Namespace, form: str) -> tuple[list[Report], bool]:
    """Return the reports, and whether they are about the members of an archive."""
    if options.to == _DEBUG_FRAME:
        plan = to_debug_frame.Wanted(form, bool(options.all))
        return [to_debug_frame.convert_to_debug_frame(options.file, options.output, plan)], False
    consumers = tuple(options.consumers or ())
    wanted = to_sframe.Wanted(
        version=options.version,
        consumers=consumers,
        form=form,
        source=options.source,
        address=options.address,
        max_rows=options.compact,
    )
    if is_archive(options.file):
        return convert_archive(options.file, options.output, wanted), True
    return [to_sframe.convert_to_sframe(options.file, options.output, wanted)], False
