"""Draws the pictures of the documentation.

    python -m tools.screen

The README's is a GDB session at a terminal, as SVG: it stops a program without DWARF CFI, GDB alone loses its stack,
and with SFrame the stack is complete.  Those of docs/show.md are the output of `sframe-unwind show` for a wrong row of
GNU ld, as SVG, and the page of `show --html` for the same program in Chromium, as PNG.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import pexpect
from rich.console import Console
from rich.text import Text

from sframe_unwind.cli import main as command_line
from tests.gdb.driver import PLUGIN, SETTINGS
from tests.samples.build import build
from tests.terminals import close
from tools.ending import exit_with

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "screen.svg"
LISTING = PICTURE.with_name("show.svg")
PAGE = PICTURE.with_name("show-page.png")
WRONG_STUB = "shared_twice@plt"
"""The stub in `.plt.got` for which GNU ld writes a wrong row."""
WIDTH, HEIGHT = 116, 60
WIDE = 120
SECONDS = 60
PROMPT = "(gdb) "
COMMANDS = (
    "bt",
    "source sframe_gdb.py",
    "bt",
    "sframe compare",
)


def main() -> int:
    """Write the pictures; return the exit status."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None).parse_args()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn("gdb ./program", session(), WIDTH), encoding="utf-8")
    command = f"sframe-unwind show ./program {WRONG_STUB} --at {WRONG_STUB}"
    LISTING.write_text(drawn(command, wrong_row(), WIDE), encoding="utf-8")
    photograph(PAGE)
    return 0


def drawn(title: str, text: str, width: int) -> str:
    """Return the contents of a terminal as SVG.

    :param text: with the escape sequences for colours.
    :param width: number of columns.
    """
    console = Console(record=True, width=width, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(text, no_wrap=True, overflow="ignore"))
    found = console.export_svg(title=title, unique_id="session")
    # The SVG would load a font from the network; use a monospaced font of the reader instead.
    found = re.sub(r"@font-face \{.*?\}\s*", "", found, flags=re.DOTALL)
    return re.sub(r"<!-- .*? -->\s*", "", found)


def wrong_row() -> str:
    """Return what `show` prints at a terminal for a stub with a wrong row."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        command_line(["show", str(build("plt")), WRONG_STUB, "--at", WRONG_STUB, "--color", "always"])
    return output.getvalue()


def photograph(picture: Path) -> None:
    """Write a picture of the page of `show --html` in Chromium; without Chromium, leave the picture as it is."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed: the picture of the page is not made", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        program, page = Path(folder, "program"), Path(folder, "program.html")
        shutil.copy(build("plt"), program)
        with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else contextlib.nullcontext():
            command_line(["show", program.name, "--code", "--html", str(page)])
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=20000")
        place = f"{page.as_uri()}#{quote(WRONG_STUB)}"
        command = [chromium, *flags, "--window-size=1200,640", f"--user-data-dir={folder}/profile"]
        subprocess.run([*command, f"--screenshot={picture}", place], check=True, timeout=SECONDS, capture_output=True)


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
        close(child)


if __name__ == "__main__":
    exit_with(main)
