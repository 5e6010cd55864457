"""Formats a whole section as JSON.

Like the text, it is yielded in pieces; functions that cannot be decoded are reported and left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from sframe_unwind.report.dump import LARGEST_ADDRESS, Numbers, Reader, Report, chosen
from sframe_unwind.report.notation import Cells
from sframe_unwind.sframe.constants import Flag
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function, Table


def to_json(file: str, sections: Iterable[Section], report: Report, only: Numbers | None = None) -> Iterator[str]:
    """Yield the JSON of the sections of a file in pieces, with one entry per header and one line per function.

    :param only: the numbers of the functions to show; ``None``: all.
    """
    tables = count()
    yield f'{{"file": {json.dumps(file)}, "sections": ['
    separator = "\n"
    for section in sections:
        for table in section.tables:
            yield separator
            yield from _table_json(section, table, report, chosen(table, next(tables), only))
            separator = ",\n"
        if section.rest is not None:
            report(section.rest)
    yield "\n]}\n"


def _table_json(section: Section, table: Table, report: Report, numbers: Sequence[int]) -> Iterator[str]:
    header = table.header
    fields = {
        "address": section.address + table.offset,
        "size": header.total_size,
        "version": header.version,
        "abi": table.arch.name,
        "flags": [flag.name for flag in Flag if flag in header.flags],
        "fixed_ra_offset": header.fixed_ra_offset,
        "fixed_fp_offset": header.fixed_fp_offset,
    }
    yield f'{json.dumps(fields)[:-1]}, "functions": ['
    reader = Reader(table, _row_json, report)
    separator = "\n"
    for number in numbers:
        function = reader.function(number)
        rows = reader.rows(function) if function else None
        if function and rows is not None:
            joined = ", ".join([f'{{"start": {address & LARGEST_ADDRESS}, {tail}' for address, tail in rows])
            yield f'{separator}{_function_json(function)[:-1]}, "rows": [{joined}]}}'
            separator = ",\n"
    yield "]}"


def _function_json(function: Function) -> str:
    fde = function.fde
    return json.dumps(
        {
            "start": function.start & LARGEST_ADDRESS,
            "size": fde.size,
            "type": fde.fde_type.name.lower(),
            "pc_type": fde.pc_type.name.lower(),
            "repetition_size": fde.repetition_size,
            "signal": fde.signal,
            "pauth_key": fde.pauth_key.name.lower(),
        }
    )


def _row_json(cells: Cells) -> str:
    """Return the members of a row's JSON object after ``start``, with the closing brace."""
    return json.dumps({**cells._asdict(), "ra_signed": cells.ra_signed, "ra_undefined": cells.ra_undefined})[1:]
