"""Survey whole distributions: sizes, coverage, correctness, and why code is left out.

Each ELF file that is found in PATH (a file, a directory, a .deb or .rpm package, an archive, also within
another archive) is verified against its DWARF CFI, linted for every consumer, and measured.  With
--convert, a file without SFrame is examined with the SFrame that convert would make from its DWARF CFI; with
--against code, the tables are also checked against the machine code.

The results go to a database (SQLite), keyed by the contents of the files: files in it are not examined again,
and an interrupted run continues.  Without PATH, the contents of the database are shown.  --diff compares two
databases.  Nothing is extracted; whatever is skipped is recorded with the reason.

The exit status is 0, 1 if a rule is wrong or, with --diff, something became worse, 2 if the survey failed
or a PATH does not exist, 70 if a bug of this program ended the work on a file.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Callable

from sframe_unwind import __version__
from sframe_unwind.cli.file_name import file_name
from sframe_unwind.cli.numbers import add_jobs, at_least
from sframe_unwind.cli.output import check_writable, write
from sframe_unwind.cli.progress import Progress
from sframe_unwind.cli.status import CANNOT, DONE, INTERNAL_ERROR, NOT_ALL, complain
from sframe_unwind.errors import counted
from sframe_unwind.report.terminal import printable
from sframe_unwind.survey import summary
from sframe_unwind.survey.finding import total_size
from sframe_unwind.survey.reserving import reserved
from sframe_unwind.survey.rows import SurveyPlan
from sframe_unwind.survey.running import Done, Survey, Workers, local_workers
from sframe_unwind.survey.store import Store
from sframe_unwind.survey.tables import TABLES, as_csv, as_json_lines

EXAMPLES = """\
  sframe-unwind survey --store debian.db --convert --against code /var/cache/apt/archives
  sframe-unwind survey --store debian.db --html debian.html --csv tables/
  sframe-unwind survey --store debian.db --convert --dask tcp://scheduler:8786 pool/
  sframe-unwind survey --diff gcc12.db gcc15.db
"""

_MEGABYTE = 1 << 20
_LINE_PAUSE = 60
"""Seconds between two lines about the progress, where standard error is not a terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    size = at_least(0, "size in bytes")
    parser.add_argument(
        "paths", metavar="PATH", type=file_name, nargs="*", help="a file, a directory, a package, an archive"
    )
    parser.add_argument("--store", metavar="FILE", type=file_name, help="the database; it is made if there is none")
    parser.add_argument("--diff", nargs=2, metavar=("OLD", "NEW"), type=file_name, help="compare two databases")
    parser.add_argument(
        "--against",
        action="append",
        choices=("dwarf", "code"),
        help="code: also check the tables against the machine code; they are always compared with each other",
    )
    parser.add_argument(
        "--convert", action="store_true", help="examine files without SFrame with the SFrame that convert would make"
    )
    parser.add_argument("--compact", action="store_true", help="measure the SFrame that convert --compact would make")
    parser.add_argument(
        "--most-code", metavar="BYTES", type=size, default=0, help="do not interpret files with more code than this"
    )
    parser.add_argument("--again", action="store_true", help="examine files again that are in the database")
    parser.add_argument("--html", metavar="OUT", type=file_name, help="write an HTML page")
    parser.add_argument("--csv", metavar="DIR", type=file_name, help="write each table as CSV")
    parser.add_argument("--json-lines", metavar="DIR", type=file_name, help="write each table as JSON lines")
    add_jobs(parser)
    parser.add_argument(
        "--memory", metavar="BYTES", type=size, default=4 << 30, help="of a process (default: 4 GiB; 0: any)"
    )
    parser.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster that does the work")


def run(options: argparse.Namespace) -> int:
    """Run the survey, and write the requested outputs; return the exit status."""
    if options.diff:
        return _diff(options)
    if not options.store:
        complain("survey: --store is needed (try sframe-unwind survey --help)")
        return CANNOT
    if options.html:
        check_writable("--html", options.html)
    with reserved(options.store, complain) if options.paths else nullcontext():
        store = Store(options.store, new=bool(options.paths))
        try:
            if options.paths:
                _survey(options, store)
            return max(_missing(options.paths), _show(options, store))
        finally:
            store.close()


def _missing(paths: Sequence[str]) -> int:
    """Name the paths that do not exist, which are mistakes of the caller; return the exit status."""
    status = DONE
    for path in paths:
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            complain(f"{path}: {error.strerror}")
            status = CANNOT
        except (OSError, ValueError):  # it is there, or cannot be: the survey has recorded the reason
            continue
    return status


def _survey(options: argparse.Namespace, store: Store) -> None:
    plan = SurveyPlan(options.convert, "code" in (options.against or ()), options.most_code, options.compact)
    if plan.code:
        from sframe_unwind.code.decode.lifting import check_installed  # most surveys do without the interpreter

        check_installed()
    report = _Report(total_size(options.paths))
    recorded = store.begin(plan, options.paths, options.dask or counted(options.jobs, "process"))
    if options.again:
        store.forget(recorded)
    try:
        survey = Survey(store, recorded, report=report.update)
        survey.survey(options.paths, _workers(options, plan, report.tick))
    finally:
        report.clear()


def _workers(options: argparse.Namespace, plan: SurveyPlan, tick: Callable[[], None]) -> Workers:
    if options.dask:
        from sframe_unwind.survey.cluster import cluster_workers  # the extra "cluster"

        return cluster_workers(options.dask, plan, tick)
    return local_workers(plan, options.jobs, options.memory, tick)


class _Report:
    """Shows the progress of a survey, its speed, and the expected end."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._bar = Progress()
        self._started = time.monotonic()
        self._next = self._started + _LINE_PAUSE
        self._is_terminal = sys.stderr.isatty()
        self.tick, self.clear = self._bar.tick, self._bar.clear

    def update(self, done: Done) -> None:
        """Show the progress, if it is time to."""
        now = time.monotonic()
        seconds = max(now - self._started, 1e-3)
        share = done.bytes / self._size if self._size else 0.0
        left = f", {seconds / share - seconds:.0f} s left" if share else ""
        more = f", {counted(done.files, 'file')} done, {done.files / seconds:.1f} a second{left}"
        done_now, whole = done.bytes // _MEGABYTE, max(self._size // _MEGABYTE, 1)
        self._bar.update(done_now, whole, " MB", more)
        if not self._is_terminal and now >= self._next:
            self._next = now + _LINE_PAUSE
            print(f"{done_now}/{whole} MB, {seconds:.0f} s{more}", file=sys.stderr, flush=True)


def _show(options: argparse.Namespace, store: Store) -> int:
    plan = store.last_plan()
    print("\n".join(map(printable, summary.lines(store, plan))), flush=True)
    for folder, ending in ((options.csv, "csv"), (options.json_lines, "jsonl")):
        if folder is None:
            continue
        Path(folder).mkdir(parents=True, exist_ok=True)
        for table in TABLES:
            text = as_csv(store, table, plan) if ending == "csv" else "".join(as_json_lines(store, table, plan))
            write(str(Path(folder, f"{table.name}.{ending}")), text)
    if options.html:
        from sframe_unwind.survey.page import page

        write(options.html, page(store, plan, __version__, Path(options.html).parent))
    if errors := summary.internal_errors(store, plan):
        path, why = errors[0]
        more = f" (and {counted(len(errors) - 1, 'more file')})" if len(errors) > 1 else ""
        complain(f"{path}: {why}{more}")
        return INTERNAL_ERROR
    return NOT_ALL if summary.is_wrong(store, plan) else DONE


def _diff(options: argparse.Namespace) -> int:
    from sframe_unwind.survey.difference import Difference

    difference = Difference(*(Store(path, new=False) for path in options.diff))
    print("\n".join(map(printable, difference.lines())), flush=True)
    return NOT_ALL if difference.is_worse else DONE
