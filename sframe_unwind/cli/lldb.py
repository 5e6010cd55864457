"""Start LLDB with the plugin loaded.

All arguments are passed to LLDB.  The program is the lldb of this Python environment, or else the one in PATH; the
environment variable SFRAME_UNWIND_LLDB names another.  The exit status is that of LLDB.
"""

from __future__ import annotations

import argparse

from sframe_unwind.cli.debugger import LLDB, start

EXAMPLES = """\
  sframe-unwind lldb -- ./program argument
  sframe-unwind lldb ./program -c core
  sframe-unwind lldb -p 1234 --batch -o 'sframe compare -all'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("arguments", metavar="ARGS", nargs="*", help="LLDB's arguments, options included")


def run(options: argparse.Namespace) -> int:
    """Replace this process by LLDB."""
    return start(LLDB, options.arguments)
