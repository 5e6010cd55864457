"""The tables of a survey, as queries of its database; the page, CSV and JSON lines show the same tables."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.survey.rows import FileRow
from sframe_unwind.survey.store import Store

_HERE = """
WITH here AS (SELECT digest, min(path) AS path, count(*) AS paths FROM paths GROUP BY digest),
     file AS (SELECT files.*, here.path, here.paths FROM files JOIN here USING (digest) WHERE plan = :plan)
"""
"""The files that the last runs found, each of them once."""
_PRODUCER = """CASE WHEN compiler || assembler || linker = '' THEN '(not told)'
    ELSE trim(compiler || ', ' || assembler || ', ' || linker, ', ') END"""
_RATIO = "round(1.0 * nullif(sframe, 0) / eh_frame, 3)"


class Table(NamedTuple):
    """One table of a survey's report."""

    name: str
    title: str
    query: str
    about: str = ""
    """Notes for the reader of the table."""


def _file_columns() -> str:
    left_out = ("state", "why", "version", "compiler", "assembler", "linker")
    numbers = ", ".join(name for name in FileRow._fields if name not in left_out)
    return f"path, state, why, {numbers}, CASE WHEN eh_frame THEN {_RATIO} END AS ratio, {_PRODUCER} AS producer"


TABLES = (
    Table(
        "machines",
        "Totals",
        f"""{_HERE} SELECT machine, origin AS sframe_from, count(*) AS files,
        sum(code) AS code, sum(functions) AS functions,
        round(100.0 * sum(covered) / sum(code), 2) AS covered_percent,
        round(100.0 * sum(in_cfi) / sum(code), 2) AS in_cfi_percent,
        sum(sframe) AS sframe, sum(eh_frame) AS eh_frame, sum(eh_frame_hdr) AS eh_frame_hdr,
        round(1.0 * nullif(sum(sframe), 0) / sum(eh_frame), 3) AS ratio,
        round(1.0 * nullif(sum(sframe), 0) / sum(eh_frame + eh_frame_hdr), 3) AS ratio_with_hdr,
        round(1.0 * nullif(sum(sframe_shared), 0) / sum(sframe_plain), 3) AS shared,
        round(1.0 * nullif(sum(sframe_compact), 0) / sum(sframe_plain), 3) AS compact,
        sum(addresses) AS addresses_compared, sum(disagreements) AS disagreements,
        sum(instructions) AS instructions, sum(sframe_proved) AS sframe_proved,
        sum(sframe_wrong) AS sframe_wrong, sum(sframe_unknown) AS sframe_unknown, sum(dwarf_proved) AS dwarf_proved,
        sum(dwarf_wrong) AS dwarf_wrong, sum(dwarf_unknown) AS dwarf_unknown, round(sum(seconds), 1) AS seconds
        FROM file WHERE state = 'surveyed' GROUP BY machine, origin ORDER BY machine, origin""",
        "Sizes in bytes. Shared, compact: what convert --compact makes of SFrame, against what convert writes. Covered:"
        " code that SFrame describes. Proved, wrong and unknown: instructions, by the code. Seconds of one processor.",
    ),
    Table(
        "states",
        "What became of the files",
        f"""{_HERE} SELECT machine, type, state, why, count(*) AS files FROM file
        GROUP BY machine, type, state, why ORDER BY state = 'surveyed', files DESC, machine, type, why""",
    ),
    Table(
        "not_interpreted",
        "Whose code was not interpreted",
        f"""{_HERE} SELECT machine, not_interpreted AS reason, count(*) AS files, sum(code) AS code FROM file
        WHERE not_interpreted != '' GROUP BY machine, not_interpreted ORDER BY machine, not_interpreted""",
    ),
    Table(
        "reasons",
        "Why functions are left out",
        f"""{_HERE} SELECT machine, judge AS by, kinds.reason, sum(kinds.functions) AS functions,
        sum(kinds.bytes) AS code, count(DISTINCT file.id) AS files
        FROM kinds JOIN file ON file.id = kinds.file WHERE kinds.reason != ''
        GROUP BY machine, judge, kinds.reason ORDER BY functions DESC, machine, judge, kinds.reason""",
        "By convert: what it leaves out of this section. By GNU as: what GNU as 2.47 would. By tables: what only DWARF"
        " CFI describes.",
    ),
    Table(
        "outcomes",
        "How functions came out",
        f"""{_HERE} SELECT machine, judge, kind, sum(kinds.functions) AS functions, sum(kinds.bytes) AS code,
        count(DISTINCT file.id) AS files FROM kinds JOIN file ON file.id = kinds.file
        GROUP BY machine, judge, kind ORDER BY machine, judge, functions DESC, kind""",
    ),
    Table(
        "consumers",
        "What consumers make of it",
        f"""{_HERE} SELECT machine, profile AS consumer, outcome, rules, count(*) AS files,
        sum(functions_lost) AS functions_lost, sum(bytes_lost) AS code_lost
        FROM profiles JOIN file ON file.id = profiles.file
        GROUP BY machine, profile, outcome, rules ORDER BY machine, profile, files DESC, outcome, rules""",
    ),
    Table(
        "producers",
        "Findings by producer",
        f"""{_HERE} SELECT {_PRODUCER} AS producer, machine, judge, kind, level, count(*) AS findings,
        count(DISTINCT file.id) AS files FROM findings JOIN file ON file.id = findings.file
        GROUP BY producer, machine, judge, kind, level ORDER BY level, findings DESC, producer, machine, judge, kind""",
        "As the files say it in .comment and notes; distributions strip that from their packages.",
    ),
    Table(
        "files",
        "Files",
        f"{_HERE} SELECT {_file_columns()}, paths FROM file"
        " ORDER BY sframe_wrong + dwarf_wrong DESC, disagreements DESC, findings DESC, path",
        "The worst first. Paths: under how many names its content was found.",
    ),
    Table(
        "findings",
        "Findings",
        f"""{_HERE} SELECT path, machine, judge, kind, level, section, address, function, "table", says, expected
        FROM findings JOIN file ON file.id = findings.file
        ORDER BY level, judge, path, section, address, "table", kind, says""",
        "Of each kind, a file has the first 100.",
    ),
    Table(
        "kinds",
        "Functions of each file",
        f"""{_HERE} SELECT path, judge, kind, kinds.reason, kinds.functions, kinds.bytes
        FROM kinds JOIN file ON file.id = kinds.file ORDER BY path, judge, kind, kinds.reason""",
    ),
    Table(
        "profiles",
        "Consumers of each file",
        f"""{_HERE} SELECT path, profile, outcome, rules, functions_lost, bytes_lost
        FROM profiles JOIN file ON file.id = profiles.file ORDER BY path, profile""",
    ),
    Table(
        "skipped_reasons",
        "What was not looked at",
        "SELECT reason, sum(files) AS files, min(path) AS for_example FROM skipped GROUP BY reason"
        " ORDER BY sum(files) DESC, reason",
    ),
    Table("skipped", "Each of them", "SELECT path, reason, files FROM skipped ORDER BY path, reason"),
    Table("paths", "Where contents were found", "SELECT path, digest FROM paths ORDER BY path"),
)


def read(store: Store, table: Table, plan: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names of a table's columns, and its rows."""
    query = table.query.replace(":plan", str(int(plan)))
    return store.names_and_rows(query)


def as_csv(store: Store, table: Table, plan: int) -> str:
    """Return a table as CSV (RFC 4180) with a line of names."""
    names, rows = read(store, table, plan)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()


def as_json_lines(store: Store, table: Table, plan: int) -> Iterator[str]:
    """Yield the rows of a table, each as a JSON object in a line."""
    names, rows = read(store, table, plan)
    for row in rows:
        yield json.dumps(dict(zip(names, row))) + "\n"
