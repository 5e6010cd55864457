"""Draws the README's picture: a GDB session at a terminal, as SVG.

    python -m tools.screen

The session stops a program without DWARF CFI: GDB alone loses its stack, and with SFrame the stack is complete.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

import pexpect
from rich.console import Console
from rich.text import Text

from tests.gdb.driver import PLUGIN, SETTINGS
from tests.samples.build import build
from tools.ending import exit_with

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "screen.svg"
WIDTH, HEIGHT = 116, 60
SECONDS = 60
PROMPT = "(gdb) "
COMMANDS = (
    "bt",
    "source sframe_gdb.py",
    "bt",
    "sframe compare",
)


def main() -> int:
    """Write the picture; return the exit status."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None).parse_args()
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(session(), no_wrap=True, overflow="ignore"))
    PICTURE.parent.mkdir(exist_ok=True)
    drawn = console.export_svg(title="gdb ./program", unique_id="session")
    # The SVG would load a font from the network; use a monospaced font of the reader instead.
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    PICTURE.write_text(re.sub(r"<!-- .*? -->\s*", "", drawn), encoding="utf-8")
    return 0


def session() -> str:
    """Return the contents of the terminal with colours."""
    settings = [setting for setting in SETTINGS if not setting.startswith(("set style", "set width"))]
    settings += ["set filename-display basename", "set print entry-values no"]  # shows no folders of this machine
    arguments = ["-nx", "-q", *(part for setting in settings for part in ("-iex", setting))]
    arguments += ["-ex", "break sample_stop", "-ex", "run > /dev/null", str(build("sframe_only"))]
    gdb = Path(sys.executable).parent / "gdb"
    child = pexpect.spawn(
        str(gdb if gdb.exists() else "gdb"),
        arguments,
        cwd=PLUGIN.parent,
        env={**os.environ, "TERM": "xterm-256color", "HOME": "/nonexistent", "INPUTRC": "/dev/null"},
        dimensions=(HEIGHT, WIDTH),
        encoding="utf-8",
        timeout=SECONDS,
    )
    try:
        child.expect_exact(PROMPT)
        shown = ""
        for command in COMMANDS:
            child.sendline(command)
            child.expect_exact(PROMPT)
            shown += PROMPT + child.before
        return re.sub(r"\x1b\[\?2004[hl]\r?|\r", "", shown)
    finally:
        child.close(force=True)


if __name__ == "__main__":
    exit_with(main)
