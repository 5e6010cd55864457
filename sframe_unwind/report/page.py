"""HTML pages of one file each, which can be opened from disk and use neither a network nor other libraries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

_HERE = Path(__file__).parent
_STYLE, _SCRIPT, _DATA = "@STYLE@", "@SCRIPT@", "@DATA@"


def page_of_functions(file: str, folder: Path) -> str:
    """Return the relative address of the page of ``show`` for a file, if it is in the folder of another page.

    :param file: path of the file.
    :param folder: the folder of the page that links to it.
    :return: empty: it is not there.
    """
    name = Path(file).name + ".show.html"
    return quote(name) if (folder / name).is_file() else ""


def filled(template: Path, data: Mapping[str, Any], version: str) -> str:
    """Return a page.

    :param template: the page from its title on, with placeholders for the common style and functions, and for the data.
    :param data: the data for the page's script; the time and the version are added, for the head of the page.
    """
    made = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC"
    text = json.dumps({**data, "made": made, "version": version}, separators=(",", ":"))
    # Text that ends the element with the data, or begins a comment in it, must not occur there.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    page = (_HERE / "page_head.html").read_text(encoding="utf-8") + template.read_text(encoding="utf-8")
    for place, file in ((_STYLE, "page.css"), (_SCRIPT, "page.js")):
        page = page.replace(place, (_HERE / file).read_text(encoding="utf-8").rstrip())
    return page.replace(_DATA, text)
