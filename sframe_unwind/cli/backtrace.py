"""Show the stacks of all threads of a core file or a running process, without a debugger.

Frames are unwound from SFrame.  Frames without SFrame data are unwound from DWARF CFI, or by frame
pointers, which is marked as a guess.  Function names come from the symbol tables, source lines and inlined functions
from debug information: of the file, or of its separate debug file.
Each thread of a running process is stopped while its registers and its stack are copied.

The exit status is 0, or 2 if the core file or the process cannot be read completely, for example
if a core file is truncated, its executable is not found, or a file has another build ID than
the loaded one: such a file is not used.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from typing import Any

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.cli.status import CANNOT, DONE, complain
from sframe_unwind.errors import ContextError
from sframe_unwind.process.base import Thread
from sframe_unwind.process.core_file import open_core
from sframe_unwind.process.files import DEBUG_FOLDER, Files
from sframe_unwind.process.live import Live, Snapshot
from sframe_unwind.process.loader import Loader
from sframe_unwind.process.objects import LoadedObject, Objects
from sframe_unwind.process.stacks import UnwoundThread, named, of_context, walk
from sframe_unwind.report.stack import Stack, to_text
from sframe_unwind.report.terminal import printable
from sframe_unwind.unwind.saved_context import assignments, from_registers

EXAMPLES = """\
  sframe-unwind backtrace --core core
  sframe-unwind backtrace --core core --exe ./program --sysroot /srv/device
  sframe-unwind backtrace --pid 1234 --json
  sframe-unwind backtrace --pid 1234 --debuginfod
  sframe-unwind backtrace --core core --regs pc=0x401234,sp=0x7f001000,fp=0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--core", metavar="CORE", help="a core file")
    target.add_argument("--pid", metavar="PID", type=int, help="a running process")
    parser.add_argument(
        "--regs",
        metavar="REG=N,...",
        help="the stack of a context that does not run, such as a fiber, in place of the threads:"
        " pc=N,sp=N,fp=N[,lr=N], and other registers by their names",
    )
    parser.add_argument("--exe", metavar="FILE", help="the executable, if it is no longer at its original path")
    parser.add_argument("--sysroot", metavar="FOLDER", help="look for files below this folder first")
    parser.add_argument(
        "--debug-dir",
        metavar="FOLDER",
        action="append",
        help=f"look for debug files by build ID below this folder; may be repeated (default: {DEBUG_FOLDER})",
    )
    parser.add_argument("--no-lines", dest="lines", action="store_false", help="no source lines, no inlined functions")
    parser.add_argument(
        "--debuginfod",
        action="store_true",
        help="download debug files that are missing from the servers that DEBUGINFOD_URLS names",
    )
    parser.add_argument("--wide", action="store_true", help="never cut names to the width of the terminal")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Print the stacks; return the exit status."""
    status, stacks, objects = _of_core(options) if options.core is not None else _of_process(options)
    if options.json:
        shown = {frame.module for stack in stacks for frame in stack.frames}
        modules = [found for found in objects.all if found.name in shown]
        threads = [stack.to_json() for stack in stacks]
        json.dump({"threads": threads, "modules": [_module_json(found) for found in modules]}, sys.stdout)
        print()
    else:
        columns = None if options.wide or not sys.stdout.isatty() else shutil.get_terminal_size().columns
        print("\n\n".join(_text(stack, columns) for stack in stacks))
    return status


def _text(stack: Stack, columns: int | None) -> str:
    return "\n".join(printable(line) for line in (stack.title, *to_text(stack, columns)))


def _module_json(found: LoadedObject) -> dict[str, Any]:
    file = found.file.path if found.file is not None else None
    return {"path": found.name, "build_id": found.build_id or None, "bias": found.bias, "file": file}


def _of_core(options: argparse.Namespace) -> tuple[int, list[Stack], Objects]:
    core = open_core(options.core)
    registers = _registers(options, core.arch)
    roots = [options.sysroot, ""] if options.sysroot else [""]
    files = _files(options, roots, core.arch)
    given = files.given(options.exe) if options.exe else None
    loader = Loader(core.arch, core.auxv, core.memory, files, given)
    is_executable = core.executable.contains
    objects = Objects(core.arch, loader.objects(core.mappings), core.memory.read, complain, is_executable)
    status = DONE
    if core.truncated:
        complain(f"{core.path}: {core.truncated}: stacks end where memory is missing")
        status = CANNOT
    if loader.executable is None or loader.executable.file is None:
        name = loader.executable.path if loader.executable else "unknown"
        complain(f"{core.path}: executable not found: {name} (--exe FILE names it)")
        status = CANNOT
    if registers:
        stacks = [of_context(from_registers(core.arch, registers, core.memory.read), objects, core.memory.read)]
    else:
        stacks = [named(walk(thread, core.arch, objects, core.memory.read), objects) for thread in core.threads]
    return CANNOT if files.refused else status, stacks, objects


def _of_process(options: argparse.Namespace) -> tuple[int, list[Stack], Objects]:
    live = Live(options.pid)
    registers = _registers(options, live.arch)
    roots = [options.sysroot] if options.sysroot else [f"{live.folder}/root", ""]
    files = _files(options, roots, live.arch)
    given = files.given(options.exe or f"{live.folder}/exe")  # the file at the path may have been replaced
    snapshot = live.take()
    loader = Loader(live.arch, live.auxv, live.memory, files, given)
    found, is_executable = loader.objects(snapshot.mappings.files()), snapshot.mappings.is_executable
    objects = Objects(live.arch, found, live.memory.read, complain, is_executable)
    if registers:
        stacks = [of_context(from_registers(live.arch, registers, live.memory.read), objects, live.memory.read)]
    else:
        stacks = [named(_walk_copy(live, snapshot, thread, objects), objects) for thread in snapshot.threads]
    return CANNOT if files.refused else DONE, stacks, objects


def _registers(options: argparse.Namespace, arch: Arch) -> dict[int, int]:
    """Return the registers that the user gives, by DWARF number; empty: none.

    :raises ContextError: they have another form.
    """
    if options.regs is None:
        return {}
    registers = {}
    for number, text in assignments(arch, options.regs).items():
        try:
            registers[number] = int(text, 0) & ADDRESS_MASK
        except ValueError:
            raise ContextError(f"--regs: {text!r} is not a number") from None
    return registers


def _walk_copy(live: Live, snapshot: Snapshot, thread: Thread, objects: Objects) -> UnwoundThread:
    """Walk the copy of a thread's stack.

    If the walk reads memory that was not copied, for example from a signal stack, stop the thread and walk again.
    """
    snapshot.memory.missed = False
    unwound = walk(thread, live.arch, objects, snapshot.memory.read)
    if snapshot.memory.missed:
        with live.stopped(thread.id) as again:
            if again is not None:
                return walk(again, live.arch, objects, live.memory.read)
    return unwound


def _files(options: argparse.Namespace, roots: list[str], arch: Arch) -> Files:
    folders = options.debug_dir or [*([options.sysroot + DEBUG_FOLDER] if options.sysroot else []), DEBUG_FOLDER]
    download = None
    if options.debuginfod:
        from sframe_unwind.process.debuginfod import Debuginfod  # what speaks HTTP takes long to import

        download = Debuginfod(os.environ, complain).fetch
    return Files(roots, folders, (arch.elf_machine, arch.byteorder), complain, options.lines, download)
