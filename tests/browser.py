"""Renders pages in a real browser: Debian's Chromium, without a window."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from html.parser import HTMLParser
from pathlib import Path

from tests.hanging import HANG
from tests.missing import absent, not_on_this_system

TIMEOUT = HANG
"""Time limit for the browser, in seconds."""

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1200,900"),
)
WAITING = "--virtual-time-budget=20000000"
"""The browser waits for what the page does after it has loaded.

Its clock runs ahead while nothing is to be done, so the milliseconds are a number of polls.  On a busy machine, there
are many of them before another thread of the browser has done its part.
"""
DARK = "--blink-settings=preferredColorScheme=0"

PIXELS = """
    const map = byId("map"), counts = {};
    const pixels = map.getContext("2d").getImageData(0, 0, map.width, map.height).data;
    for (let at = 0; at < pixels.length; at += 4) {
        const key = pixels.slice(at, at + 3).join();
        counts[key] = (counts[key] || 0) + 1;
    }
    const style = getComputedStyle(document.documentElement);
    const parts = (name) => style.getPropertyValue(name).match(/[0-9a-f]{2}/g);
    const colour = (name) => parts(name).map((part) => parseInt(part, 16)).join();
    const back = getComputedStyle(document.body).backgroundColor;
    return JSON.stringify({ all: pixels.length / 4, found: COLOURS.map((name) => counts[colour(name)] || 0), back });
"""
"""A script for :func:`render` on the page of ``verify``: counts the pixels of each colour in its map."""

NARROW = "--window-size=500,900"
"""A flag for :func:`render`: the narrowest window that Chromium has."""

FITS = """
    const height = (cell) => {
        const inside = document.createRange();
        inside.selectNodeContents(cell);
        return inside.getBoundingClientRect().height;
    };
    const words = [...document.querySelectorAll("td.short, td.number")].filter((cell) => cell.textContent);
    return JSON.stringify({
        width: document.documentElement.clientWidth,
        page: document.documentElement.scrollWidth,
        broken: words.filter((cell) => height(cell) > 30).length,
        boxes: [...document.querySelectorAll("table")].map((table) => {
            const box = table.closest(".scroll");
            return box ? [box.clientWidth, box.scrollWidth, getComputedStyle(box).overflowX, box.tabIndex] : null;
        }),
    });
"""
"""A script for :func:`render`: tells whether the page is as wide as the window, and its tables scroll separately."""

_WITHOUT_END = ("meta", "input", "br", "img", "link")


class Element:
    """An element of a page that was rendered."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Element | str] = []

    @property
    def text(self) -> str:
        """Return all text in it."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str) -> list[Element]:
        """Return all elements of a kind in it."""
        inside = [child for child in self.children if isinstance(child, Element)]
        return [found for child in inside for found in ([child] if child.tag == tag else []) + child.all(tag)]

    def by_id(self, name: str) -> Element:
        """Return the element in it with an id."""
        return next(found for found in self._everything() if found.attributes.get("id") == name)

    def _everything(self) -> list[Element]:
        inside = [child for child in self.children if isinstance(child, Element)]
        return [found for child in inside for found in (child, *child._everything())]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _WITHOUT_END:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def render(page: Path, *flags: str, script: str = "") -> Element:
    """Return a page after its scripts have run; skip the test if there is no browser, or none that works.

    :param script: runs after the page's own scripts; its result is in the element `result`.
    """
    chromium = shutil.which("chromium") or ""
    if not chromium:
        absent("chromium is not installed: the page that verify writes stays untested")
    if script:
        body = f'document.body.append(make("pre", {{ id: "result" }}, String((() => {{ {script} }})())));'
        page = Path(shutil.copy(page, page.with_suffix(".scripted.html")))
        page.write_text(page.read_text(encoding="utf-8").replace("</body>", f"<script>{body}</script></body>"), "utf-8")
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, *FLAGS, *flags, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        if done.returncode:
            empty = subprocess.run([*command[:-1], "about:blank"], capture_output=True, timeout=TIMEOUT, check=False)
            if empty.returncode:
                not_on_this_system(f"chromium shows no page here, not even an empty one: status {empty.returncode}")
        done.check_returncode()
    parser = _Parser()
    parser.feed(done.stdout)
    return parser.root


def check_narrow(page: Path) -> None:
    """Check that a page can be read in a narrow window: wide parts scroll separately."""
    found = json.loads(render(page, NARROW, script=FITS).by_id("result").text)
    assert found["page"] == found["width"] <= 500
    assert found["broken"] == 0
    for box in found["boxes"]:
        assert box is not None
        shown, inside, overflow, _ = box
        assert (shown <= found["width"], overflow) == (True, "auto")
        assert inside >= shown
