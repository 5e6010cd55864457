"""The study that measures how fast pages of `show` open and search: what it measures is the work that it names."""

from __future__ import annotations

from pathlib import Path

from lab.show.page_times import measured
from sframe_unwind.cli import main
from tests.samples.build import build


def test_each_search_is_drawn(tmp_path: Path) -> None:
    page = tmp_path / "plt.html"
    assert main(["show", str(build("plt")), "--html", str(page)]) == 1
    times = measured(page, ["called_back", "no function has this name", ""])
    one, none, every = (rows for _, rows in times.searches)
    assert (one, none, every) == (1, 0, times.functions)
    assert times.functions > 5
    assert times.opened > 0
    assert all(time > 0 for time, _ in times.searches)
