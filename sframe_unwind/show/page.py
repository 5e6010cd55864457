"""Writes the HTML page of ``show``: one file that needs no network and no other library.

The list of functions is plain data.  The listings are compressed in blocks, which the page reads when one of their
functions is opened: those of a C library take 25 MB as text.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.report.listing import DWARF, PLAIN, UNKNOWN, Listing, Row
from sframe_unwind.report.page import filled
from sframe_unwind.report.rule_cells import VALUES
from sframe_unwind.report.terminal import printable
from sframe_unwind.show.file import ShownFile

TEMPLATE = Path(__file__).with_name("page.html")
_BLOCK = 64
"""Number of functions in a block."""
_LEVEL = 9


def page(name: str, file: ShownFile, listings: Iterable[tuple[CodeRange, Listing]], version: str) -> str:
    """Return an HTML page with the listings of a file.

    :param name: name of the file.
    :param listings: the extents of the functions, and their listings.
    :param version: version of this project, for the head of the page.
    """
    functions: list[list[Any]] = []
    blocks: list[str] = []
    columns: tuple[str, ...] = ()
    remaining = iter(listings)
    while chunk := list(islice(remaining, _BLOCK)):
        contents = []
        for part, listing in chunk:
            columns = listing.columns
            functions.append(
                [
                    printable(listing.name),
                    printable(listing.section),
                    hex(listing.start),
                    listing.size,
                    listing.differences,
                    listing.count(UNKNOWN),
                ]
            )
            contents.append({"data": [*map(printable, listing.data)], "rows": list(_rows(file, part, listing))})
        text = json.dumps(contents, separators=(",", ":")).encode()
        blocks.append(base64.b64encode(zlib.compress(text, _LEVEL)).decode())
    arch = file.tables.arch
    data = {
        "file": printable(name),
        "relative": file.relative,
        "columns": list(columns),
        "block": _BLOCK,
        "registers": {"sp": arch.register_name(arch.sp), "fp": arch.register_name(arch.fp)},
        "functions": functions,
        "blocks": blocks,
    }
    return filled(TEMPLATE, data, version)


def _rows(file: ShownFile, part: CodeRange, listing: Listing) -> Iterator[list[Any]]:
    """Yield the rows: size and text of the instruction, and the parts that only few rows have.

    A row for a place inside the instruction before has the size 0, and the distance from that instruction.
    """
    bit = 1 << listing.columns.index(DWARF)
    before = listing.start
    for row in listing.rows:
        more = _more(row, listing.columns)
        if row.begins & bit and (others := file.others(part.start + row.address - listing.start)):
            more["others"] = others
        if not row.raw:
            more["inside"] = row.address - before
        before = row.address
        text = printable(row.text) or row.raw.hex(" ")
        yield [len(row.raw), text, more] if more else [len(row.raw), text]


def _more(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if row.begins:
        found["rules"] = {
            number: None if cells is None else list(cells)
            for number, cells in enumerate(row.rules)
            if row.begins >> number & 1
        }
    extra = row.extra
    if extra is PLAIN:
        return found
    if extra.differs:
        found["differs"] = [VALUES.index(what) for what in extra.differs]
    if extra.refuted:
        found["refuted"] = [[columns.index(one.table), VALUES.index(one.what)] for one in extra.refuted]
    if extra.notes:
        found["notes"] = [[note.kind, printable(note.text)] for note in extra.notes]
    for key, texts in (("labels", extra.labels), ("relocations", extra.relocations)):
        if texts:
            found[key] = [*map(printable, texts)]
    if extra.source:
        found["source"] = [
            [printable(f"{place.file}:{place.line}"), printable(place.function), printable(place.text.strip())]
            for place in extra.source
        ]
    return found
