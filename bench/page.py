"""Write the measured tables of `docs/performance.md` anew, from the results that `python -m bench --json` keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.report import number
from bench.results import RESULTS, read

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN = "<!-- The tables up to the end mark are made by: python -m bench.page -->\n"
END = "<!-- end of the tables -->\n"
_HEAD = "| figure | median | quartiles | target | made of |\n|---|--:|--:|--:|---|"


def main() -> None:
    """Write the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), read(RESULTS)), encoding="utf-8")


def filled(text: str, parts: Mapping[str, Any]) -> str:
    """Return the text of the page with the tables of the results between its marks.

    :raises ValueError: the page has no marks.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name}: expected {BEGIN.strip()} and {END.strip()}")
    return "".join((before, begin, *_tables(parts), end, after))


def _tables(parts: Mapping[str, Any]) -> Iterator[str]:
    for name, part in parts.items():
        where = f"{part['processors']} processors, a load of {part['load']}, Python {part['python']}"
        yield f"\n`python -m bench {name}`, {part['date']}, {where}:\n\n"
        yield _HEAD + "\n"
        yield from map(_line, part["rows"])
    yield "\n"


def _line(row: Mapping[str, Any]) -> str:
    unit = "" if row["unit"] == "x" else f" {row['unit']}"
    median, quartiles = "not measured", ""
    if row["rounds"]:
        median = f"{number(row['median'])}{unit}" + (" (missed)" if row["verdict"] == "over" else "")
        quartiles = f"{number(row['lower_quartile'])} to {number(row['upper_quartile'])}" if row["rounds"] > 1 else ""
    target = row["target"]
    limit = "" if target is None else f"{'at least' if target['at_least'] else 'at most'} {target['limit']:g}{unit}"
    return f"| {row['what']} | {median} | {quartiles} | {limit} | {row['detail']} |\n"


if __name__ == "__main__":
    main()
