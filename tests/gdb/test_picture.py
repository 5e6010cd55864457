"""The picture in the README shows the current output of GDB and the plugin."""

from __future__ import annotations

import html
import re

from tests.gdb.terminal import plain
from tools.screen import PICTURE, session


def bare(text: str) -> str:
    """Return a text without blanks, and without the parts that vary between machines.

    These are addresses, and the argument `b` of the frame that GDB alone shows, which is a random word of the stack.
    """
    text = re.sub(r"0x[0-9a-f]{5,}", "ADDRESS", text)
    return re.sub(r"\s", "", re.sub(r"\bb=-?\d+", "b=NUMBER", text))


def test_the_picture_is_of_today() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", drawn)
    shown = "".join(html.unescape(text) for text in texts)
    assert bare(plain(session())) in bare(shown)
