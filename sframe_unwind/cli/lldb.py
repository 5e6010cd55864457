"""Start LLDB with the plugin loaded.

All arguments are LLDB's own.  The lldb of this Python environment is preferred to that of PATH; the environment
variable SFRAME_UNWIND_LLDB names another.  The exit status is LLDB's.
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
    """Declare what the command takes."""
    parser.add_argument("arguments", metavar="ARGS", nargs="*", help="LLDB's arguments, options included")


def run(options: argparse.Namespace) -> int:
    """Become LLDB."""
    return start(LLDB, options.arguments)
