"""Unwind the samples of a recording by SFrame, by frame pointers and by DWARF CFI.

PERF.DATA is a recording of Linux perf with copies of the user stack: perf record --call-graph dwarf.  It can be of
another machine, if the files that it names are found here.  The stack of each sample is unwound by each method:

  kernel        the kernel's own stacks, if the recording has them (perf record --call-graph fp,defer)
  fp            frame pointers, as the kernel does it
  fp-mended     SFrame or DWARF CFI for the innermost frame, frame pointers for its callers
  sframe        SFrame alone, as this project reads it
  sframe-linux  SFrame of the sections and functions that Linux would load
  sframe+fp     SFrame, and frame pointers where SFrame has no row
  sframe+dwarf  SFrame, and DWARF CFI where SFrame has no row
  sframe+code   SFrame, and the machine code where SFrame has no row (only with --method; extra "code")
  code          the machine code (only with --method; extra "code")
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
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sframe_unwind import __version__
from sframe_unwind.cli import output
from sframe_unwind.cli.file_name import file_name
from sframe_unwind.cli.file_options import add_file_arguments, found_files
from sframe_unwind.cli.numbers import process_id, thread_id
from sframe_unwind.cli.status import CANNOT, DONE, complain
from sframe_unwind.errors import FileError, FormatError, counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf import own_vdso
from sframe_unwind.perf.advice import advice
from sframe_unwind.perf.flame import Stacks
from sframe_unwind.perf.generated import GeneratedNames
from sframe_unwind.perf.judging import Judge
from sframe_unwind.perf.machines import arch_of
from sframe_unwind.perf.mappings import Mapping
from sframe_unwind.perf.methods import BY_CODE, METHODS, usual_methods
from sframe_unwind.perf.names import Names
from sframe_unwind.perf.recording import Recording
from sframe_unwind.perf.sample import Sample
from sframe_unwind.perf.selection import Selection, numbers_of
from sframe_unwind.perf.single import sample_json, sample_text
from sframe_unwind.perf.source import STANDARD_INPUT
from sframe_unwind.perf.spaces import Spaces
from sframe_unwind.perf.summary import Summary
from sframe_unwind.perf.text import to_text
from sframe_unwind.perf.unusable import Unusable, why_none
from sframe_unwind.process.files import DEBUG_FOLDER
from sframe_unwind.report.terminal import printable

EXAMPLES = """\
  sframe-unwind perf perf.data
  sframe-unwind perf perf.data --html stacks.html
  perf record -o - -e cpu-clock --call-graph dwarf ./program | sframe-unwind perf -
  sframe-unwind perf perf.data --convert --method sframe,dwarf --json
  sframe-unwind perf perf.data --method sframe,sframe+code,dwarf
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
        help=f"the methods, of {', '.join(METHODS)} (default: all that the recording has data for)",
    )
    parser.add_argument("--event", metavar="NAME", action="append", default=[], help="only samples of this event")
    parser.add_argument("--pid", metavar="PID", type=process_id, action="append", default=[], help="only this process")
    parser.add_argument("--tid", metavar="TID", type=thread_id, action="append", default=[], help="only this thread")
    parser.add_argument("--comm", metavar="NAME", action="append", default=[], help="only threads with this name")
    parser.add_argument("--stacks", action="store_true", help="print each sample with its stacks, and no tables")
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


class _Results(NamedTuple):
    """The results for the samples of one event."""

    event: str
    sample_type: int
    judge: Judge
    summary: Summary
    stacks: Stacks


class _Run:
    """One run of the command.

    :raises FileError: the recording cannot be read.
    :raises MissingExtraError: a method needs an extra that is not installed.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        if not BY_CODE.isdisjoint(options.method or ()):
            from sframe_unwind.code.decode.lifting import check_installed  # most runs do without

            check_installed()
        self._options = options
        self._draws = any(path is not None for path in (options.html, options.folded, options.speedscope))
        self.name = "standard input" if options.recording == STANDARD_INPUT else options.recording
        self.by_event: dict[int, _Results] = {}
        generated = GeneratedNames(options.sysroot or "")
        self._names = Names(generated)
        with _named(self.name):
            self.recording = Recording(options.recording)
            self._events = self.recording.event_names
            wanted = Selection(numbers_of(options.event, self._events), options.pid, options.tid, options.comm)
            self._arch = arch_of(self.recording.machine, self.recording.byteorder)
            kept = str(Path("~").expanduser() / _PERF_FOLDER)
            self.files = found_files(options, self._arch, [options.sysroot, ""] if options.sysroot else [""], [kept])
            own, build_ids = os.uname(), self.recording.build_ids
            vdso = own_vdso.finder(self.recording.is_of(own.nodename, own.release))
            self._spaces = Spaces(self._arch, self.files, build_ids, options.convert, vdso)
            for event in self.recording:
                if not isinstance(event, Sample):
                    self._spaces.take(event)
                    if isinstance(event, Mapping):
                        generated.note(event)
                elif wanted.has(event, self._spaces.name(event.tid)):
                    self._take(event)

    def _take(self, sample: Sample) -> None:
        results = self.by_event.get(sample.event) or self._new(sample.event)
        thread = self._spaces.name(sample.tid)
        unwound = results.judge.take(sample)
        results.summary.samples = results.judge.samples
        if unwound is None:
            return
        results.summary.add(unwound, thread)
        if self._draws:
            results.stacks.add(unwound, thread)
        if self._options.stacks and self._options.json:
            print(json.dumps(sample_json(unwound, thread, results.event, self._names)))
        elif self._options.stacks:
            for line in sample_text(unwound, thread, results.event, self._names):
                print(printable(line))

    def _new(self, number: int) -> _Results:
        methods = self._options.method or usual_methods(self.recording)
        judge = Judge(self._arch, self._spaces, methods)
        summary, stacks = Summary(methods, self._names), Stacks(methods, self._names)
        kind = self.recording.sample_types[number]
        made = self.by_event[number] = _Results(self._events[number], kind, judge, summary, stacks)
        return made


def run(options: argparse.Namespace) -> int:
    """Print the verdicts; return the exit status."""
    written = {"--html": options.html, "--folded": options.folded, "--speedscope": options.speedscope}
    for option, path in written.items():
        if path is not None:
            output.check_writable(option, path)
    done = _Run(options)
    usable = [results for _, results in sorted(done.by_event.items()) if results.summary.user_samples]
    _complain(done, usable)
    if not usable:
        return CANNOT
    asked = next((option for option, path in written.items() if path is not None), "")
    if asked and len(usable) > 1:
        names = " and ".join(results.event for results in usable)
        raise FileError(f"{asked}: samples of {names} are never added up; --event NAME chooses one event")
    _write(options, done.name, usable[0])
    if not options.stacks:
        _print(options, usable)
    return CANNOT if done.recording.truncated else DONE


def _complain(done: _Run, usable: Sequence[_Results]) -> None:
    """Report missing files and missing parts of the recording."""
    for line in done.files.unfit.values():
        complain(line)
    if done.recording.truncated:
        samples = sum(results.judge.samples for results in done.by_event.values())
        complain(f"{done.name}: {done.recording.truncated}: {counted(samples, 'sample', spec=',')} until there")
    if not usable:
        reasons: Counter[Unusable] = sum((results.judge.unusable for results in done.by_event.values()), Counter())
        complain(f"{done.name}: no sample can be unwound; {why_none(done.recording.sample_types, reasons)}")
        return
    for results in done.by_event.values():
        of = f"{done.name}: {results.event}" if len(done.by_event) > 1 else done.name
        if results not in usable:
            complain(f"{of}: no sample can be unwound; {why_none([results.sample_type], results.judge.unusable)}")
            continue
        for what, count in results.judge.unusable.items():
            all_of_them = counted(results.judge.samples, "sample")
            complain(f"{of}: {count} of {all_of_them} {'is' if count == 1 else 'are'} not unwound: {what.value}")


def _write(options: argparse.Namespace, name: str, results: _Results) -> None:
    summary, stacks = results.summary, results.stacks
    if options.html:
        from sframe_unwind.perf.page import page

        hints = list(advice(summary, options.convert))
        output.write(
            options.html,
            page(summary, stacks.tree(), hints, name, version=__version__, folder=Path(options.html).parent),
        )
    if options.folded:
        output.write(options.folded, "".join(f"{line}\n" for line in stacks.folded()))
    if options.speedscope:
        output.write(options.speedscope, json.dumps(stacks.speedscope(name, __version__)))


def _print(options: argparse.Namespace, usable: Sequence[_Results]) -> None:
    if options.json:
        objects = [{"event": results.event, **results.summary.to_json()} for results in usable]
        json.dump(objects[0] if len(objects) == 1 else {"events": objects}, sys.stdout)
        print()
        return
    for number, results in enumerate(usable):
        if len(usable) > 1:
            print(f"{chr(10) * bool(number)}Event {printable(results.event)}")
        for line in to_text(results.summary, output.terminal_columns(options.wide)):
            print(printable(line))
        for line in advice(results.summary, options.convert):
            print(f"\n{printable(line)}")


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
