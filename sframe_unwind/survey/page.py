"""The page of a survey: totals, plots, and all tables, which can be sorted and searched."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sframe_unwind.report.page import filled, page_of_functions
from sframe_unwind.report.terminal import printable
from sframe_unwind.survey.plots import histogram
from sframe_unwind.survey.store import Store
from sframe_unwind.survey.tables import TABLES, read

TEMPLATE = Path(__file__).with_name("page.html")
_LEFT_OUT = ("kinds", "profiles", "skipped", "paths")
"""Tables that are too long for the page; their sums are on it."""
_MOST = 20_000
"""Maximum number of rows of a table on the page."""


def page(store: Store, plan: int, version: str, folder: Path | None = None) -> str:
    """Return an HTML page that shows the results of a survey.

    :param version: version of this project.
    :param folder: of the page: it links to the pages of ``show`` there; ``None``: to none.
    """
    tables = {table.name: read(store, table, plan) for table in TABLES if table.name not in _LEFT_OUT}
    (tool, text), *_ = store.rows("SELECT tool, plan FROM plans WHERE id = ?", (plan,))
    runs = store.rows("SELECT workers, ended - started FROM runs WHERE plan = ? AND ended IS NOT NULL", (plan,))
    data = {
        "plan": _options(json.loads(text)),
        "tool": tool,
        "show": _shown(*tables["files"], folder) if folder is not None else {},
        "runs": [f"{workers}: {seconds:.0f} s" for workers, seconds in runs],
        "tables": [
            {
                "name": table.name,
                "title": table.title,
                "about": table.about,
                "columns": tables[table.name][0],
                "rows": [_cells(tables[table.name][0], row) for row in tables[table.name][1][:_MOST]],
                "left_out": max(len(tables[table.name][1]) - _MOST, 0),
            }
            for table in TABLES
            if table.name in tables
        ],
    }
    plots = "".join(_plots(*tables["files"]))
    return filled(TEMPLATE, data, version).replace("@PLOTS@", plots)


def _shown(names: list[str], rows: list[tuple[Any, ...]], folder: Path) -> dict[str, str]:
    """Return the pages of ``show`` in a folder, by the path of the file."""
    paths = (str(row[names.index("path")]) for row in rows)
    return {printable(path): found for path in paths if (found := page_of_functions(path, folder))}


def _options(plan: Mapping[str, Any]) -> str:
    """Return a plan as the options of the command."""
    given = {
        "--convert": plan.get("convert"),
        "--compact": plan.get("compact"),
        "--against code": plan.get("code"),
        f"--most-code {plan.get('most_code')}": plan.get("most_code"),
    }
    return " ".join(option for option, is_given in given.items() if is_given)


def _cells(names: Sequence[str], row: Sequence[Any]) -> list[Any]:
    """Return a row for the page: addresses as text; the database has those of kernels as negative numbers."""
    return [
        hex(value % (1 << 64)) if name == "address" else printable(value) if isinstance(value, str) else value
        for name, value in zip(names, row)
    ]


def _plots(names: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    """Return the plots of the files of each machine."""
    files = [dict(zip(names, row)) for row in rows]
    plots = []
    for machine in sorted({file["machine"] for file in files if file["sframe"]}):
        mine = [file for file in files if file["machine"] == machine and file["sframe"]]
        plain = [file["sframe"] / file["eh_frame"] for file in mine if file["eh_frame"]]
        whole = [file["sframe"] / (file["eh_frame"] + file["eh_frame_hdr"]) for file in mine if file["eh_frame"]]
        covered = [100 * file["covered"] / file["code"] for file in mine if file["code"]]
        plots.append(histogram(f"{machine}: .sframe / .eh_frame", plain, 0.0, 2.0))
        plots.append(histogram(f"{machine}: .sframe / (.eh_frame + hdr)", whole, 0.0, 2.0))
        plots.append(histogram(f"{machine}: % of the code covered", covered, 0.0, 100.0))
    return plots
