"""Programs with one value of their SFrame changed, by the encoder."""

from __future__ import annotations

import shutil
from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.sframe.constants import AbiNumber, FdeType
from sframe_unwind.sframe.encode import TableSpec, describe, encode
from tests.abis.rewrite import overwrite

_WORDS = {"cfa": 0, "ra": 1, "fp": 2}
"""The index of each value's data word in a default row; on AMD64 the return address has none, and FP the second."""


def plant(source: Path, target: Path, what: str) -> set[int]:
    """Copy a program with one value changed; return the addresses to which it applies (some are not compared)."""
    (section,) = elf.load(source)
    spec = describe(section)
    (table,) = spec.tables
    changed, addresses = _changed(table, what)
    content = encode(spec._replace(tables=(changed,)))
    assert len(content) == section.size
    overwrite(Path(shutil.copy(source, target)), content)
    return addresses


def _changed(table: TableSpec, what: str) -> tuple[TableSpec, set[int]]:
    amd64 = table.abi is AbiNumber.AMD64_ENDIAN_LITTLE
    if amd64 and what == "ra":
        return table._replace(fixed_ra_offset=-16), {function.start for function in table.functions}
    word = min(_WORDS[what], 1) if amd64 else _WORDS[what]
    number, place = next(
        (number, place)
        for number, function in enumerate(table.functions)
        for place, row in enumerate(function.rows)
        if len(row.words) > word and function.fde_type is FdeType.DEFAULT
    )
    function = table.functions[number]
    row = function.rows[place]
    words = (*row.words[:word], row.words[word] + 8, *row.words[word + 1 :])
    rows = (*function.rows[:place], row._replace(words=words), *function.rows[place + 1 :])
    functions = (*table.functions[:number], function._replace(rows=rows), *table.functions[number + 1 :])
    return table._replace(functions=functions), {function.start + row.start}
