"""The rules for the relocations of an object file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Described, by_table
from sframe_unwind.lint.reading import TableReading
from sframe_unwind.lint.subject import Subject
from sframe_unwind.sframe.constants import KNOWN_FLAGS, Flag

_NAMED = 3


def relocation_findings(
    subject: Subject, tables: Sequence[TableReading], functions: Sequence[Described]
) -> Iterator[Finding]:
    """Yield the errors in the relocations of start fields; a linked file has none."""
    if not subject.is_object:
        return
    start_fields = {function.offset: function for function in functions}
    relocated = {field.offset for field in subject.fields}
    for field in subject.fields:
        if field.offset not in start_fields:
            yield Finding(c.RELOCATION_STRAY, "a relocation that is not for a start field", field.offset)
    for offset, function in start_fields.items():
        if offset not in relocated:
            message = "the start field has no relocation: the function was discarded, or lies at no known place"
            yield Finding(c.RELOCATION_MISSING, message, offset, function.start, "")
    yield from _pcrel(subject, tables, functions)
    grouped = sorted({field.target for field in subject.fields if field.in_group})
    if grouped:
        more = f" and {len(grouped) - _NAMED} more" if len(grouped) > _NAMED else ""
        message = f"relocations to sections of groups that can be discarded: {', '.join(grouped[:_NAMED])}{more}"
        first = next(field.offset for field in subject.fields if field.in_group)
        yield Finding(c.RELOCATION_COMDAT, message, first)


def _pcrel(subject: Subject, tables: Sequence[TableReading], functions: Sequence[Described]) -> Iterator[Finding]:
    kinds = {field.offset: field.pc_relative for field in subject.fields}
    for table, own in zip(tables, by_table(functions, tables)):
        if not KNOWN_FLAGS[table.header.version] & Flag.FDE_FUNC_START_PCREL:
            continue
        flagged = bool(table.header.flags & Flag.FDE_FUNC_START_PCREL)
        for function in own:
            if kinds.get(function.offset) is (not flagged):
                kind = "absolute" if flagged else "relative to the field"
                message = f"the flag is {'set' if flagged else 'not set'}, but the relocation is {kind}"
                where = subject.name_of(function.start)
                yield Finding(c.RELOCATION_PCREL, message, function.offset, function.start, where)
                break
