"""Unwind the samples of a recording by SFrame, by frame pointers and by DWARF CFI.

PERF.DATA is a recording of Linux perf with copies of the user stack: perf record --call-graph dwarf.  It can be of
another machine, if the files that it names are found here.  The stack of each sample is unwound by each method:

  fp            frame pointers, as the kernel does it
  fp-mended     SFrame or DWARF CFI for the innermost frame, frame pointers for its callers
  sframe        SFrame alone, as this project reads it
  sframe-linux  SFrame of the sections and functions that Linux would load
  sframe+fp     SFrame, and frame pointers where SFrame has no row
  sframe+dwarf  SFrame, and DWARF CFI where SFrame has no row
  dwarf         DWARF CFI; the others are compared with it
  dwarf+fp      DWARF CFI, and frame pointers where there is none

A stack is complete (it reaches the start of the thread), cut (it continues after the end of the copy), failed (it
ends earlier), or wrong (it differs from the stack by the CFI).

The exit status is 0, or 2 if the recording cannot be read or no sample of it can be unwound; also if it is truncated:
then the samples up to its end are unwound.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sframe_unwind import __version__
from sframe_unwind.cli import output
from sframe_unwind.cli.file_name import file_name
from sframe_unwind.cli.file_options import add_file_arguments, found_files
from sframe_unwind.cli.status import CANNOT, DONE, complain
from sframe_unwind.errors import FileError, FormatError, counted
from sframe_unwind.perf.advice import advice
from sframe_unwind.perf.flame import Stacks
from sframe_unwind.perf.judging import Judge
from sframe_unwind.perf.machines import arch_of
from sframe_unwind.perf.methods import METHODS
from sframe_unwind.perf.names import Names
from sframe_unwind.perf.recording import Recording
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.source import STANDARD_INPUT
from sframe_unwind.perf.spaces import Spaces
from sframe_unwind.perf.summary import Summary
from sframe_unwind.perf.text import to_text
from sframe_unwind.perf.unusable import why_none
from sframe_unwind.process.files import DEBUG_FOLDER
from sframe_unwind.report.terminal import printable

EXAMPLES = """\
  sframe-unwind perf perf.data
  sframe-unwind perf perf.data --html stacks.html
  perf record -o - -e cpu-clock --call-graph dwarf ./program | sframe-unwind perf -
  sframe-unwind perf perf.data --convert --method sframe,dwarf --json
  sframe-unwind perf perf.data --method sframe --folded stacks.txt
"""

_PERF_FOLDER = ".debug"
"""The folder in the home directory in which ``perf record`` keeps files by build ID."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("recording", metavar="PERF.DATA", type=file_name, help="the recording; -: standard input")
    parser.add_argument(
        "--method",
        metavar="M,...",
        type=_methods,
        default=tuple(METHODS),
        help=f"the methods, of {', '.join(METHODS)} (default: all)",
    )
    parser.add_argument("--convert", action="store_true", help="make SFrame from the CFI of files that have none")
    add_file_arguments(
        parser,
        debug_dir="look for files by build ID below this folder; may be repeated"
        f" (default: {DEBUG_FOLDER}, and ~/{_PERF_FOLDER} where perf keeps them)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--wide", action="store_true", help="never cut names to the width of the terminal")
    parser.add_argument(
        "--html",
        metavar="OUT",
        type=file_name,
        help="write an HTML page with flame graphs of the methods and of differences",
    )
    parser.add_argument("--folded", metavar="OUT", type=file_name, help="write the stacks for flamegraph.pl")
    parser.add_argument("--speedscope", metavar="OUT", type=file_name, help="write the stacks for speedscope")


def run(options: argparse.Namespace) -> int:
    """Print the verdicts; return the exit status."""
    written = {"--html": options.html, "--folded": options.folded, "--speedscope": options.speedscope}
    for option, path in written.items():
        if path is not None:
            output.check_writable(option, path)
    names = Names()
    summary, stacks = Summary(options.method, names), Stacks(options.method, names)
    name = "standard input" if options.recording == STANDARD_INPUT else options.recording
    with _named(name):
        recording = Recording(options.recording)
        arch = arch_of(recording.machine, recording.byteorder)
        kept = str(Path("~").expanduser() / _PERF_FOLDER)
        files = found_files(options, arch, [options.sysroot, ""] if options.sysroot else [""], [kept])
        spaces = Spaces(arch, files, recording.build_ids, options.convert)
        judge = Judge(arch, spaces, options.method)
        for event in recording:
            if not isinstance(event, Sample):
                spaces.take(event)
                continue
            unwound = judge.take(event)
            if unwound is not None:
                summary.add(unwound, spaces.name(event.tid))
                if any(written.values()):
                    stacks.add(unwound, spaces.name(event.tid))
    for line in files.unfit.values():
        complain(line)
    summary.samples = judge.samples
    if recording.truncated:
        complain(f"{name}: {recording.truncated}: {counted(judge.samples, 'sample', spec=',')} until there")
    if not summary.user_samples:
        reason = why_none(recording.sample_types, judge.unusable)
        complain(f"{name}: no sample can be unwound; {reason}")
        return CANNOT
    for what, count in judge.unusable.items():
        samples = f"{count} of {counted(judge.samples, 'sample')} {'is' if count == 1 else 'are'} not unwound"
        complain(f"{name}: {samples}: {what.value}")
    if options.html:
        from sframe_unwind.perf.page import page

        hints = list(advice(summary, options.convert))
        output.write(options.html, page(summary, stacks.tree(), hints, name, __version__))
    if options.folded:
        output.write(options.folded, "".join(f"{line}\n" for line in stacks.folded()))
    if options.speedscope:
        output.write(options.speedscope, json.dumps(stacks.speedscope(name, __version__)))
    if options.json:
        json.dump(summary.to_json(), sys.stdout)
        print()
    else:
        for line in to_text(summary, output.terminal_columns(options.wide)):
            print(printable(line))
        for line in advice(summary, options.convert):
            print(f"\n{printable(line)}")
    return CANNOT if recording.truncated else DONE


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Name the recording in errors of its format.

    :raises FileError: with the message of the error.
    """
    try:
        yield
    except FormatError as error:
        raise FileError(f"{path}: {error}") from error


def _methods(text: str) -> Sequence[str]:
    names = text.split(",")
    for name in names:
        if name not in METHODS:
            raise argparse.ArgumentTypeError(f"unknown method {name!r}; expected some of {', '.join(METHODS)}")
    return tuple(dict.fromkeys(names))
