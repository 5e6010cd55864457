"""Show the stacks of all threads of a core file, a running process or the crash dump of a kernel, without a debugger.

Frames are unwound from SFrame.  Frames without SFrame data are unwound from DWARF CFI, else by their machine
code (extra "code"), or by frame pointers, which is marked as a guess.  Function names come from the symbol tables,
source lines and inlined functions from debug information: of the file, or of its separate debug file.
Each thread of a running process is stopped while its registers and its stack are copied.

The threads of a Linux kernel are its tasks.  drgn (the extra "kernel") reads its crash dump, an ELF or kdump-compressed
file; --exe names the kernel's vmlinux with debug information.

The exit status is 0, or 2 if the core file or the process cannot be read completely, for example
if a core file is truncated, its executable is not found, or a file has another build ID than
the loaded one: such a file is not used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from sframe_unwind.cli.contexts import FindContext, add_context_arguments, names_context, wanted_context
from sframe_unwind.cli.file_name import file_name, input_name
from sframe_unwind.cli.file_options import add_file_arguments, found_files
from sframe_unwind.cli.numbers import process_id
from sframe_unwind.cli.output import terminal_columns
from sframe_unwind.cli.status import CANNOT, DONE, complain
from sframe_unwind.errors import ContextError, FileError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.process.base import Thread
from sframe_unwind.process.files import DEBUG_FOLDER, Files
from sframe_unwind.process.objects import LoadedObject
from sframe_unwind.process.stacks import Known, named, of_context
from sframe_unwind.report.groups import grouped
from sframe_unwind.report.stack import Stack, to_text
from sframe_unwind.report.terminal import printable

if TYPE_CHECKING:  # a command needs one of them
    from sframe_unwind.process.core_target import CoreTarget
    from sframe_unwind.process.live_target import LiveTarget
    from sframe_unwind.process.vmcore import KernelObject, VmcoreTarget

_MANY = 20
"""On a terminal, the equal stacks of more threads than this are shown once."""

_ELSEWHERE = "--sysroot FOLDER, --debug-dir FOLDER or --debuginfod gives them"

EXAMPLES = """\
  sframe-unwind backtrace --core core
  sframe-unwind backtrace --core core --exe ./program --sysroot /srv/device
  sframe-unwind backtrace --pid 1234 --json
  sframe-unwind backtrace --pid 1234 --debuginfod
  sframe-unwind backtrace --pid 1234 --group
  sframe-unwind backtrace --pid 1234 --thread 1240 --thread worker
  sframe-unwind backtrace --vmcore vmcore --exe vmlinux --modules /lib/modules/6.1.0
  sframe-unwind backtrace --core core --regs pc=0x401234,sp=0x7f001000,fp=0
  sframe-unwind backtrace --core core --ucontext 0x4c5a20
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--core", metavar="CORE", type=input_name, help="a core file")
    target.add_argument(
        "--vmcore",
        metavar="DUMP",
        type=file_name,
        help="the crash dump of a Linux kernel, or /proc/kcore, the running one: the stacks of its tasks",
    )
    target.add_argument("--pid", metavar="PID", type=process_id, help="a running process")
    add_context_arguments(parser)
    parser.add_argument(
        "--exe",
        metavar="FILE",
        type=file_name,
        help="the executable, if it is no longer at its original path; the vmlinux of a dump",
    )
    parser.add_argument(
        "--modules",
        metavar="FOLDER",
        type=file_name,
        help="look for the modules of a kernel (.ko, .ko.debug) in and below this folder",
    )
    add_file_arguments(
        parser,
        debug_dir=f"look for debug files by build ID below this folder; may be repeated (default: {DEBUG_FOLDER})",
    )
    parser.add_argument(
        "-n", dest="limit", metavar="LIMIT", type=_limit, help="show at most so many frames of each stack"
    )
    parser.add_argument(
        "--thread",
        metavar="TID|NAME",
        action="append",
        help="show only threads with this id or name; may be repeated",
    )
    parser.add_argument(
        "--group",
        action=argparse.BooleanOptionalAction,
        help=f"show equal stacks once, with all of their threads (default: for more than {_MANY}, on a terminal)",
    )
    parser.add_argument("--no-lines", dest="lines", action="store_false", help="no source lines, no inlined functions")
    parser.add_argument("--wide", action="store_true", help="never cut names to the width of the terminal")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _limit(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text}: not a number of frames, 1 or more")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Print the stacks; return the exit status."""
    if options.vmcore is not None:
        return _shown(options, _opened_dump(options), None, lambda: False)
    opened = _opened_core(options) if options.core is not None else _opened_process(options)
    files = opened.files
    status = _shown(options, opened.target, opened.find, lambda: files.refused)
    lines = list(files.unfit.values())
    lost = opened.lost_files()
    names = sorted({path.rpartition("/")[2] for path in (*files.unfit, *lost)})
    if len(names) > len(lines) or len(lines) > 1:
        of = options.core or f"process {options.pid}"
        lines = [f"{of}: not found, or not the files that were loaded: {', '.join(names)}; {_ELSEWHERE}"]
    for line in lines:
        complain(line)
    return CANNOT if lines else status


def _shown(
    options: argparse.Namespace,
    target: CoreTarget | LiveTarget | VmcoreTarget,
    find: FindContext | None,
    refused: Callable[[], bool],
) -> int:
    """Print the stacks; return the exit status.

    :param find: reads the context to show in place of the threads; ``None``: there is none.
    :param refused: returns whether a file was not used, because its build ID differs from that of the loaded one.
    """
    for line in target.missing:
        complain(line)
    if find is not None:
        stacks = [of_context(find(target), target, options.limit)]
    else:
        threads = _wanted(target.threads, options.thread)
        known: Known = {}
        stacks = [named(target.unwind(thread), target.code, options.limit, known) for thread in threads]
    shown = {frame.module for stack in stacks for frame in stack.frames}
    modules = [found for found in target.code.all if found.name in shown]
    for found in modules:
        if isinstance(found, LoadedObject) and found.lacks:
            complain(found.lacks)
    if options.json:
        import json  # the text needs none

        shown_threads = [stack.to_json() for stack in stacks]
        json.dump({"threads": shown_threads, "modules": [_module_json(found) for found in modules]}, sys.stdout)
        print()
    else:
        columns = terminal_columns(options.wide)
        is_grouped = options.group if options.group is not None else sys.stdout.isatty() and len(stacks) > _MANY
        print("\n\n".join(_text(stack, columns) for stack in (grouped(stacks) if is_grouped else stacks)))
    return CANNOT if target.missing or refused() else DONE


def _wanted(threads: Sequence[Thread], names: Sequence[str] | None) -> Sequence[Thread]:
    """Return the threads that the user named; all, if none is named.

    :raises FileError: no thread has an id or name.
    """
    if names is None:
        return threads
    for name in names:
        if not any(name in (str(thread.id), thread.name) for thread in threads):
            known = sorted({f"{thread.name}" for thread in threads})
            raise FileError(f"--thread: no thread has the id or the name {name}; the names are {', '.join(known)}")
    return [thread for thread in threads if not {str(thread.id), thread.name}.isdisjoint(names)]


def _text(stack: Stack, columns: int | None) -> str:
    return "\n".join(printable(line) for line in (stack.title, *to_text(stack, columns)))


def _module_json(found: LoadedObject | KernelObject) -> dict[str, Any]:
    file = found.file.path if found.file is not None else None
    return {"path": found.name, "build_id": found.build_id or None, "bias": found.bias, "file": file}


def _opened_dump(options: argparse.Namespace) -> VmcoreTarget:
    """Open the crash dump of a kernel.

    :raises ContextError: an option for contexts of a process is given.
    :raises FileError: its file is not given.
    """
    from pathlib import Path  # it takes 4 ms to import

    from sframe_unwind.process.drgn_kernel import open_dump  # drgn takes long to import
    from sframe_unwind.process.vmcore import VmcoreTarget

    if names_context(options):
        raise ContextError("--regs, --ucontext and --jmpbuf are for --core and --pid")
    if options.exe is None:
        raise FileError("--vmcore needs the kernel's file: --exe vmlinux")
    modules = []
    if options.modules is not None:
        modules = [str(path) for ending in ("*.ko", "*.ko.debug") for path in Path(options.modules).rglob(ending)]
    return VmcoreTarget(options.vmcore, open_dump(options.vmcore, options.exe, modules), complain, options.lines)


class _Opened(NamedTuple):
    """A core file or a process."""

    target: CoreTarget | LiveTarget
    files: Files
    find: FindContext | None
    """Reads the context to show in place of the threads; ``None``: there is none."""
    lost_files: Callable[[], list[str]]
    """Returns the paths of files, except the executable, that frames of a core file needed and that were not found."""


def _opened_core(options: argparse.Namespace) -> _Opened:
    from sframe_unwind.process.core_file import open_core
    from sframe_unwind.process.core_target import CoreTarget

    core = open_core(options.core)
    find = wanted_context(options, core)
    roots = [options.sysroot, ""] if options.sysroot else [""]
    files = found_files(options, core.arch, roots, lines=options.lines)
    target = CoreTarget(core, files, files.given(options.exe) if options.exe else None, complain)
    return _Opened(target, files, find, target.lost_files)


def _opened_process(options: argparse.Namespace) -> _Opened:
    from sframe_unwind.process.live import Live
    from sframe_unwind.process.live_target import LiveTarget

    process = Live(options.pid)
    find = wanted_context(options, process)
    roots = [options.sysroot] if options.sysroot else [f"{process.folder}/root", ""]
    files = found_files(options, process.arch, roots, lines=options.lines)
    given = files.given(options.exe or f"{process.folder}/exe")  # the file at the path may have been replaced
    return _Opened(LiveTarget(process, files, given, complain), files, find, list)
