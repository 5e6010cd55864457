"""Start GDB with the plugin loaded.

All arguments are passed to GDB.  The program is the gdb of this Python environment, or else the one in PATH; the
environment variable SFRAME_UNWIND_GDB names another.  The exit status is that of GDB.
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
    """Add the arguments of the command."""
    parser.add_argument("arguments", metavar="ARGS", nargs="*", help="GDB's arguments, options included")


def run(options: argparse.Namespace) -> int:
    """Replace this process by GDB."""
    # The plugin is loaded after the init files and before the user's scripts, which may use its commands.
    return start(GDB, options.arguments)
