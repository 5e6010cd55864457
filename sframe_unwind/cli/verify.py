"""Compare SFrame with the DWARF CFI of the same file, or both with its machine code.

Compares the rules for the CFA, the return address and the frame pointer in FILE's .sframe section
with those in .eh_frame and .debug_frame, at each address where one of them changes.
With --against code, interprets the instructions and compares both tables with the result at each
instruction; the verdict on a rule is proved, wrong or unknown.  This needs the extra "code"
(pip install 'sframe-unwind[code]').
An archive stands for its members with SFrame, a directory for all ELF files with SFrame
and all archives below it; with --against code, also for files with DWARF CFI but no SFrame.

The exit status is 0 if all rules agree, 1 if some do not or one table leaves out a part of a function that
the other describes, 2 if a file cannot be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Union

from sframe_unwind import __version__
from sframe_unwind.cli.status import CANNOT, DONE, NOT_ALL, complain
from sframe_unwind.code.lifting import check_installed
from sframe_unwind.errors import FileError
from sframe_unwind.report.terminal import printable
from sframe_unwind.verify import Plan
from sframe_unwind.verify.inputs import Failure, Input, answer, inputs
from sframe_unwind.verify.page import page
from sframe_unwind.verify.verdict import Verdict

EXAMPLES = """\
  sframe-unwind verify ./program libfoo.so libbar.a module.ko
  sframe-unwind verify --against code /usr/lib/libfoo.so
  sframe-unwind verify --against dwarf --against code -j 4 ./program
  sframe-unwind verify --html report.html build/
  sframe-unwind verify --json build/ | jq '.files[].disagreements[]'
"""

Item = Union[Input, Failure]

_PROGRESS_FROM = 10
"""Minimum number of files for which a progress bar is shown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("files", metavar="FILE", nargs="+", help="an ELF file, an archive, or a directory of them")
    parser.add_argument(
        "--against",
        action="append",
        choices=("dwarf", "code"),
        help="DWARF CFI (the default), or the machine code; may be given twice",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="OUT", help="also write an HTML page")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="number of processes")


def run(options: argparse.Namespace) -> int:
    """Print the comparison of each file; return the exit status."""
    status = DONE
    keep = options.json or options.html
    verdicts: list[Verdict] = []
    failures: list[Failure] = []
    against = options.against or ["dwarf"]
    plan = Plan("dwarf" in against, "code" in against)
    if plan.code:
        check_installed()
    items = list(inputs(options.files, plan.code))
    for number, found in enumerate(_answers(items, options.jobs, plan), 1):
        if len(items) >= _PROGRESS_FROM:
            _progress(number, len(items))
        if isinstance(found, Failure):
            status = CANNOT
            complain(str(found))
            failures.append(found)
            continue
        if not found.agrees and status == DONE:
            status = NOT_ALL
        if keep:
            verdicts.append(found)
        if not options.json:
            print("\n".join(map(printable, found.lines())))
    if options.json:
        found_json = {"files": [verdict.to_json() for verdict in verdicts]}
        json.dump({**found_json, "failures": [failure.to_json() for failure in failures]}, sys.stdout)
        print()
    if options.html:
        _write(options.html, page(verdicts, failures, __version__))
    return status


def _answers(items: Sequence[Item], jobs: int, plan: Plan) -> Iterator[Verdict | Failure]:
    if jobs <= 1 or len(items) <= 1:
        # The functions of one file are what there is to share out.
        plan = plan._replace(jobs=max(jobs, 1), progress=_progress if len(items) < _PROGRESS_FROM else None)
        yield from (answer(item, plan) for item in items)
        return
    jobs = min(jobs, len(items))
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(partial(answer, plan=plan), items, chunksize=max(len(items) // (jobs * 16), 1))


def _progress(done: int, total: int) -> None:
    """Show a progress bar, if stderr is a terminal."""
    width = 30
    if not sys.stderr.isatty() or (done < total and width * done // total == width * (done - 1) // total):
        return
    bar = "#" * (width * done // total)
    end = "\n" if done == total else ""
    print(f"\r[{bar:<{width}}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
