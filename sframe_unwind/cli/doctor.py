"""Try what works on this machine, and name a remedy for what does not.

The command starts GDB and LLDB without the plugin on a tiny program, attaches to a process, opens a perf event, lets a
process crash, and imports the packages of each extra.  The debuggers are those that the commands gdb and lldb start.
The exit status is 0 if all of it works, and 1 if something does not, or could not be found out.

--json prints an object with the version of this program and the list "findings".  Each finding has "about" (Python,
GDB, LLDB or Linux), "name", "works" (true, false, or null: it could not be found out), "found" (the result in words)
and "remedy" (empty: there is none, or none is needed).
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence

from sframe_unwind import __version__
from sframe_unwind.cli import debugger
from sframe_unwind.cli.debugger import GDB, LLDB, Debugger
from sframe_unwind.cli.status import DONE, NOT_ALL
from sframe_unwind.machine import gdb, linux, lldb, python
from sframe_unwind.machine.finding import Finding
from sframe_unwind.report.terminal import printable

EXAMPLES = """\
  sframe-unwind doctor --json
  SFRAME_UNWIND_GDB=/usr/bin/gdb sframe-unwind doctor
"""

_MARKS = {True: "ok", False: "no", None: "?"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print what this machine can do; return the exit status."""
    findings = examine()
    if options.json:
        print(json.dumps({"version": __version__, "findings": [one.to_json() for one in findings]}, indent=2))
    else:
        print("\n".join(lines(findings)))
    return DONE if all(one.works for one in findings) else NOT_ALL


def examine() -> tuple[Finding, ...]:
    """Return the findings of all probes."""
    return (*python.probe(), *_of_gdb(), *_of_lldb(), *linux.probe())


def _of_gdb() -> tuple[Finding, ...]:
    program = debugger.found(GDB)
    return gdb.probe(program) if program else (_not_there("GDB", GDB),)


def _of_lldb() -> tuple[Finding, ...]:
    program = debugger.found(LLDB)
    if program is None:
        return (_not_there("LLDB", LLDB),)
    return lldb.probe(program, debugger.environment(LLDB, program))


def _not_there(about: str, wanted: Debugger) -> Finding:
    return Finding(about, "version", False, debugger.not_found(wanted))


def lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the text: one part for each part of the machine, and a verdict."""
    column = max(len(one.name) for one in findings)
    for about, part in itertools.groupby(findings, key=lambda one: one.about):
        yield about
        for one in part:
            yield f"  {_MARKS[one.works]:<2}  {one.name:<{column}}  {printable(one.found)}"
            if one.remedy and not one.works:
                yield " " * (column + 8) + printable(one.remedy)
    failed = sum(not one.works for one in findings)
    yield f"{len(findings) - failed} of {len(findings)} work" if failed else "all of it works"
