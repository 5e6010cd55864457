"""Tell whether a consumer would load the SFrame of a file, which functions it would lose, and which rules it breaks.

For each consumer that --for names, prints whether the section is accepted whole, accepted with losses
(which functions, how many bytes of code), or refused (for which rule, and with which effect); then the
other broken rules.  docs/lint-reference.md explains the rules.

  spec            the specification: manuals of 2.44 to 2.46 (GNU binutils)
  linux-user      Linux, stacks of user programs (version 3): series v13, not merged
  linux-kernel    Linux, the arm64 kernel and its modules (version 3): series v8, not merged
  glibc           backtrace of glibc built with --enable-sframe (version 2): glibc-2.43
  libsframe-2.40  GNU libsframe (version 1): binutils-2_40
  libsframe-2.44  GNU libsframe (version 2): binutils-2_44
  libsframe-2.47  GNU libsframe (versions 2 and 3): binutils-2_47

The last column is the revision whose rules are checked; later ones can differ.  docs/lint-reference.md has the sources.

Of an archive, the members with SFrame are checked; of a directory, all ELF files with SFrame and
all archives below it.

The exit status is 0, 1 if there are findings (notes and findings in the baseline do not count),
2 if a file cannot be linted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from sframe_unwind import __version__, baseline
from sframe_unwind.cli.file_name import file_name, input_name
from sframe_unwind.cli.function_options import add_functions, extents
from sframe_unwind.cli.guarded import Item, guarded, status_of
from sframe_unwind.cli.output import check_writable, write
from sframe_unwind.cli.progress import Progress
from sframe_unwind.cli.status import DONE, NOT_ALL, complain
from sframe_unwind.elf import ElfBinary
from sframe_unwind.lint import PROFILES, SPEC, FileReport, Profile, lint_elf
from sframe_unwind.lint.baseline import keys
from sframe_unwind.lint.report import counts, to_json, to_text
from sframe_unwind.lint.sarif import to_sarif
from sframe_unwind.report.terminal import printable
from sframe_unwind.verify.inputs import Failure, examined, inputs

_COMMAND = "lint"
EXAMPLES = """\
  sframe-unwind lint ./program libfoo.so
  sframe-unwind lint --for linux-user --for glibc /usr/lib/libfoo.so
  sframe-unwind lint --for linux-kernel vmlinux modules/
  sframe-unwind lint --write-baseline known.json build/
  sframe-unwind lint --baseline known.json --sarif lint.sarif build/
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "files", metavar="FILE", type=input_name, nargs="+", help="an ELF file, an archive, or a directory of them"
    )
    parser.add_argument(
        "--for",
        dest="profiles",
        action="append",
        choices=tuple(PROFILES),
        help="a consumer; may be repeated (default: spec)",
    )
    add_functions(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--sarif", metavar="OUT", type=file_name, help="also write SARIF 2.1.0")
    parser.add_argument("--baseline", metavar="FILE", type=file_name, help="accept the findings that this file has")
    parser.add_argument(
        "--write-baseline", metavar="FILE", type=file_name, help="write the findings to a file that accepts them"
    )


def run(options: argparse.Namespace) -> int:
    """Print the report of each file; return the exit status."""
    for option, path in (("--sarif", options.sarif), ("--write-baseline", options.write_baseline)):
        if path is not None:
            check_writable(option, path)
    known = baseline.read(options.baseline, _COMMAND) if options.baseline is not None else frozenset()
    profiles = [PROFILES[name] for name in dict.fromkeys(options.profiles or [SPEC.name])]
    reports: list[FileReport] = []
    failures: list[Failure] = []
    progress = Progress()
    for number, item in enumerate(inputs(options.files, tick=progress.tick)):
        progress.update(number, 0, " files")
        found = _linted(item, profiles, options.functions)
        progress.clear()
        if isinstance(found, Failure):
            complain(str(found))
            failures.append(found)
            continue
        reports.append(found)
        if not options.json:
            print("\n".join(printable(line) for line in to_text(found, known)), flush=True)
    if options.json:
        files = [to_json(report, known) for report in reports]
        json.dump({"files": files, "failures": [failure.to_json() for failure in failures]}, sys.stdout)
        print()
    if options.sarif is not None:
        log = to_sarif(reports, list(map(str, failures)), known, __version__)
        write(options.sarif, json.dumps(log, indent=1) + "\n")
    if options.write_baseline is not None:
        write(options.write_baseline, baseline.to_text(keys(reports), _COMMAND))
        known |= keys(reports)
    if failures:
        return status_of(failures)
    return NOT_ALL if any(counts(report, known) for report in reports) else DONE


def _linted(item: Item, profiles: list[Profile], functions: Sequence[str]) -> FileReport | Failure:
    def lint(binary: ElfBinary) -> FileReport:
        only = extents(binary, functions)
        report = lint_elf(binary, profiles)
        return report if only is None else report.within(only)

    return guarded(item, lambda item: examined(item, lint))
