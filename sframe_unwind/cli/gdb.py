"""Start GDB with the plugin loaded.

All arguments are GDB's own.  The gdb of this Python environment is preferred to that of PATH; the environment
variable SFRAME_UNWIND_GDB names another.  The exit status is GDB's.
"""

from __future__ import annotations

import argparse

from sframe_unwind.cli.debugger import GDB, start

EXAMPLES = """\
  sframe-unwind gdb --args ./program argument
  sframe-unwind gdb ./program core
  sframe-unwind gdb -p 1234 -batch -ex 'sframe compare -all'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("arguments", metavar="ARGS", nargs="*", help="GDB's arguments, options included")


def run(options: argparse.Namespace) -> int:
    """Become GDB."""
    # After the init files, before the program: a script of the user's own may already ask for the commands.
    return start(GDB, options.arguments)
