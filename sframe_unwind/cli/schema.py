"""Print the JSON schema of a command's output.

The schemas are of JSON Schema's draft 2020-12.  The number at the end of "$id" is the version of the schema: it grows
when a member is removed or changes its meaning.  Members may be added without that, so readers must ignore those that
they do not know.  Without a command, the names of all schemas are printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sframe_unwind.cli.status import DONE

EXAMPLES = """\
  sframe-unwind schema verify > verify.schema.json
  sframe-unwind schema dump | jq '."$defs".function.properties'
"""

_FOLDER = Path(__file__).with_name("schemas")
NAMES = tuple(sorted(file.stem for file in _FOLDER.glob("*.json")))
"""The commands with a schema; ``compare`` is the debuggers' command ``sframe compare``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", nargs="?", choices=NAMES, metavar="COMMAND", help=f"the command ({', '.join(NAMES)})")


def run(options: argparse.Namespace) -> int:
    """Print a schema, or their names; return the exit status."""
    sys.stdout.write("".join(f"{name}\n" for name in NAMES) if options.name is None else text(options.name))
    return DONE


def text(name: str) -> str:
    """Return the schema of a command's output as JSON.

    :param name: one of :data:`NAMES`.
    """
    return (_FOLDER / f"{name}.json").read_text(encoding="utf-8")
