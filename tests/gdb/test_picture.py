"""The picture in the README shows the current output of GDB and the plugin."""

from __future__ import annotations

import html
import re

from tests.abis.debuggers import newest
from tests.gdb.terminal import plain
from tools.screen import PICTURE, session


def bare(text: str) -> str:
    """Return a text without blanks, and without the parts that vary between machines.

    These are addresses, and what GDB alone finds beyond the innermost frame: its return addresses and arguments there
    are words that older calls left on the stack, which depend on the environment of the program.
    """
    text = re.sub(r"^#\d+ +0x[0-9a-f]+ in \?\? \(\)\n", "", text.replace("\xa0", " "), flags=re.MULTILINE)
    text = re.sub(r"\bb=-?\d+", "b=NUMBER", text)
    row = r"^(#\d+) +(?:0x[0-9a-f]+|-) +(?:0x[0-9a-f]+|-) +(0x[0-9a-f]+ +0x[0-9a-f]+ +sframe +\w+)(?: +<-- .*)?$"
    text = re.sub(row, r"\1 \2", text, flags=re.MULTILINE)
    return re.sub(r"\s", "", re.sub(r"0x[0-9a-f]{5,}", "ADDRESS", text))


def test_the_picture_is_of_today() -> None:
    newest("amd64")
    drawn = PICTURE.read_text(encoding="utf-8")
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", drawn)
    shown = "".join(html.unescape(text) for text in texts)
    assert bare(plain(session())) in bare(shown)
