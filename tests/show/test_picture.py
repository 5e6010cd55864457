"""The picture of docs/show.md has what `show` prints today."""

from __future__ import annotations

import html
import re

from tests.missing import package_needed
from tools.screen import LISTING, wrong_row


def test_the_picture_is_of_today() -> None:
    package_needed("pyvex")
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", LISTING.read_text(encoding="utf-8"))
    drawn = "".join(html.unescape(text).replace("\xa0", "").strip() for text in texts)
    printed = re.sub(r"\x1b\[[\d;]*m", "", wrong_row())
    assert re.sub(r"\s", "", printed) in re.sub(r"\s", "", drawn)
