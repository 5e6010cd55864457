"""Measures in Chromium how fast a page of `show --html` opens, and how fast a search in it is.

    python -m lab.show.page_times FILE...

prints for each file: the number of functions, the milliseconds from the beginning of the load to the drawn list, and
the shortest and the longest time of a search in milliseconds, which includes the drawing of its results.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.cli import main as command_line
from tests.browser import render

TEXTS = ("a", "_init", "aes", "get", "no function has this name", "0x1", "")
"""The searched texts: those with many, few and no results, an address, and an empty one for the whole list."""

_MEASURING = """
    const drawn = () => { document.body.getBoundingClientRect(); return performance.now(); };
    const opened = drawn();
    const searches = TEXTS.map((text) => {
        byId("search").value = text;
        const begun = performance.now();
        byId("search").dispatchEvent(new Event("input"));
        return [drawn() - begun, document.querySelectorAll("#functions tbody tr").length];
    });
    return JSON.stringify({ functions: data.functions.length, opened, searches });
"""


class Times(NamedTuple):
    """The measurements of one page."""

    functions: int
    """Number of functions in its list."""
    opened: float
    """Milliseconds from the beginning of the load until the list is drawn."""
    searches: Sequence[tuple[float, int]]
    """For each of the texts, the milliseconds of the search, and the number of rows that it draws."""


def measured(page: Path, texts: Sequence[str] = TEXTS) -> Times:
    """Return the times of a page."""
    script = _MEASURING.replace("TEXTS", json.dumps(texts))
    found = json.loads(render(page, script=script).by_id("result").text)
    return Times(found["functions"], found["opened"], [(float(time), int(rows)) for time, rows in found["searches"]])


def main() -> int:
    """Print the times; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    for path in parser.parse_args().files:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            if command_line(["show", str(path), "--html", str(page)]) not in (0, 1):
                return 1
            times, size = measured(page), page.stat().st_size
        searches = sorted(time for time, _ in times.searches)
        print(
            f"{path}: {times.functions:,} functions, {size:,} bytes; drawn after {times.opened:.0f} ms;"
            f" a search takes {searches[0]:.1f} to {searches[-1]:.1f} ms",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
