"""Compare SFrame with the DWARF CFI or ORC of the same file, or all with its machine code.

Compares the rules for the CFA, the return address and the frame pointer in FILE's .sframe section
with those in .eh_frame and .debug_frame, at each address where one of them changes.
With --against code, interprets the instructions and compares both tables with the result at each
instruction; the verdict on a rule is proved, wrong or unknown.  This needs the extra "code"
(pip install pyvex 'bitstring<5' capstone).
With --against orc, compares the ORC of a Linux kernel for AMD64, or of a module, with its SFrame, or with
its DWARF CFI if it has no SFrame.
Of an archive, the members with SFrame are compared; of a directory, all ELF files with SFrame and
all archives below it.  With --against code, files with DWARF CFI but no SFrame are also compared.

The exit status is 0 if all rules agree, 1 if some do not or one table leaves out a part of a function that
the other describes, unless the baseline has it, 2 if a file cannot be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from sframe_unwind import __version__, baseline
from sframe_unwind.cli.file_name import file_name, input_name
from sframe_unwind.cli.function_options import add_functions, extents
from sframe_unwind.cli.guarded import Item, guarded, status_of
from sframe_unwind.cli.numbers import add_jobs
from sframe_unwind.cli.output import check_writable, descriptor, write
from sframe_unwind.cli.progress import Progress
from sframe_unwind.cli.status import DONE, NOT_ALL, complain
from sframe_unwind.report.terminal import printable
from sframe_unwind.verify import Plan
from sframe_unwind.verify.baseline import keys as keys_of
from sframe_unwind.verify.baseline import without
from sframe_unwind.verify.inputs import Failure, answer, inputs
from sframe_unwind.verify.verdict import Verdict
from sframe_unwind.workers import Lost, can_fork, in_order

_COMMAND = "verify"
EXAMPLES = """\
  sframe-unwind verify ./program libfoo.so libbar.a module.ko
  sframe-unwind verify --against code /usr/lib/libfoo.so
  sframe-unwind verify --against code ./program --function main --function 0x1185
  sframe-unwind verify --against dwarf --against code -j 4 ./program
  sframe-unwind verify --against orc --against code vmlinux
  sframe-unwind verify --against code --write-baseline known.json build/
  sframe-unwind verify --against code --baseline known.json build/
  sframe-unwind verify --html report.html build/
  sframe-unwind verify --json build/ | jq '.files[].disagreements[]'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "files", metavar="FILE", type=input_name, nargs="+", help="an ELF file, an archive, or a directory of them"
    )
    parser.add_argument(
        "--against",
        action="append",
        choices=("dwarf", "orc", "code"),
        help="DWARF CFI (the default), the ORC of a kernel, or the machine code; may be given several times",
    )
    parser.add_argument(
        "--why-unknown", action="store_true", help="with --against code: say why it is unknown whether a rule is right"
    )
    add_functions(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--baseline", metavar="FILE", type=file_name, help="accept the findings that this file has")
    parser.add_argument(
        "--write-baseline", metavar="FILE", type=file_name, help="write the findings to a file that accepts them"
    )
    parser.add_argument("--html", metavar="OUT", type=file_name, help="also write an HTML page")
    add_jobs(parser)


def run(options: argparse.Namespace) -> int:
    """Print the comparison of each file; return the exit status."""
    status = DONE
    keep = options.json or options.html
    verdicts: list[Verdict] = []
    failures: list[Failure] = []
    against = options.against or ["dwarf"]
    plan = Plan(
        "dwarf" in against, "code" in against, "orc" in against, options.why_unknown, listing=bool(options.html)
    )
    if plan.code:
        from sframe_unwind.code.decode.lifting import check_installed  # most comparisons do without the interpreter

        check_installed()
    for option, path in (("--html", options.html), ("--write-baseline", options.write_baseline)):
        if path is not None:
            check_writable(option, path)
    known = baseline.read(options.baseline, _COMMAND) if options.baseline is not None else frozenset()
    keys: frozenset[baseline.Key] = frozenset()
    progress = Progress()
    items = []
    for item in inputs(options.files, plan.code or plan.orc, progress.tick):
        items.append(item)
        progress.update(len(items), 0, " files found")
    for found in _answers(items, options.jobs, plan, options.functions, progress):
        progress.clear()
        if isinstance(found, Failure):
            complain(str(found))
            failures.append(found)
            continue
        if options.write_baseline is not None:
            keys |= keys_of(found)
        if known:
            found = without(found, known)
        if not found.agrees and options.write_baseline is None:
            status = NOT_ALL
        if keep:
            verdicts.append(found)
        if not options.json:
            # Print each file's lines at once: a program may be reading them, or may have stopped reading.
            print("\n".join(map(printable, found.lines())), flush=True)
    progress.clear()
    if options.json:
        found_json = {"files": [verdict.to_json() for verdict in verdicts]}
        json.dump({**found_json, "failures": [failure.to_json() for failure in failures]}, sys.stdout)
        print()
    if options.write_baseline is not None:
        write(options.write_baseline, baseline.to_text(keys, _COMMAND))
    if options.html:
        from sframe_unwind.verify.page import page

        write(options.html, page(verdicts, failures, __version__, Path(options.html).parent))
    return status_of(failures) or status


def _answers(
    items: Sequence[Item], jobs: int, plan: Plan, functions: Sequence[str], progress: Progress
) -> Iterator[Verdict | Failure]:
    if jobs == 1 or len(items) <= 1 or not can_fork():
        # The functions of one file are distributed to the processes.
        plan = plan._replace(jobs=jobs, progress=partial(progress.update, what=" functions"))
        yield from (_answer(item, plan, functions) for item in items)
        return
    progress.update(0, len(items), " files")
    answers = in_order(
        partial(_answer, plan=plan, functions=functions), items, min(jobs, len(items)), descriptor(), progress.tick
    )
    for number, (item, found) in enumerate(zip(items, answers), 1):
        yield Failure(item.name, found.why) if isinstance(found, Lost) else found
        progress.update(number, len(items), " files")


def _answer(item: Item, plan: Plan, functions: Sequence[str]) -> Verdict | Failure:
    return guarded(item, lambda item: answer(item, plan, partial(extents, functions=functions)))
