"""Print the line that loads the plugin, for a debugger's init file.

The line contains the path of the plugin's script in this installation.
"""

from __future__ import annotations

import argparse

from sframe_unwind.cli.debugger import GDB, LLDB
from sframe_unwind.cli.status import DONE

EXAMPLES = """\
  sframe-unwind plugin gdb >> ~/.gdbinit
  sframe-unwind plugin lldb >> ~/.lldbinit
"""

_DEBUGGERS = {debugger.name: debugger for debugger in (GDB, LLDB)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("debugger", choices=list(_DEBUGGERS), help="the debugger to load the plugin in")


def run(options: argparse.Namespace) -> int:
    """Print the line; return the exit status.

    :raises FileError: the plugin is not installed.
    """
    print(_DEBUGGERS[options.debugger].load_line())
    return DONE
