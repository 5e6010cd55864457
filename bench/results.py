"""The results of runs as JSON: each part has the rows of the last run that measured it, and its circumstances."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report import Row

RESULTS = Path(__file__).with_name("results.json")
"""The results from which `docs/performance.md` is made."""
_DIGITS = 4
"""Number of digits of a value that are kept: the noise is larger."""


def circumstances() -> dict[str, Any]:
    """Return when and where a part is measured: the load of the machine matters most."""
    return {
        "date": datetime.date.today().isoformat(),
        "load": round(os.getloadavg()[0], 1),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
    }


def to_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the JSON objects of rows."""
    return [_row(row) for row in rows]


def read(path: Path) -> dict[str, Any]:
    """Return the results in a file by part; none if there is no such file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(path: Path, parts: Mapping[str, Any]) -> None:
    """Write the results of parts to a file, which keeps those of other parts."""
    text = json.dumps({**read(path), **parts}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _row(row: Row) -> dict[str, Any]:
    target = None if row.target is None else {"limit": row.target.limit, "at_least": row.target.at_least}
    about = {"what": row.what, "unit": row.unit, "target": target, "verdict": row.verdict, "detail": row.detail}
    if not row.values:
        return {**about, "rounds": 0}
    lower, _, upper = statistics.quantiles(row.values, n=4) if len(row.values) > 1 else [row.value] * 3
    numbers = {"median": row.value, "lower_quartile": lower, "upper_quartile": upper}
    return {**about, "rounds": len(row.values), **{name: _rounded(value) for name, value in numbers.items()}}


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
