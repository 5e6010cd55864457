"""The rules for the relocations of an object file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.lint import catalogue as c
from sframe_unwind.lint.findings import Finding
from sframe_unwind.lint.functions import Described
from sframe_unwind.lint.reading import TableReading
from sframe_unwind.lint.subject import Subject
from sframe_unwind.sframe.constants import Flag

_NAMED = 3


def relocation_findings(
    subject: Subject, tables: Sequence[TableReading], functions: Sequence[Described]
) -> Iterator[Finding]:
    """Yield what is wrong with the relocations of start fields; a linked file has none."""
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
    yield from _pcrel(subject, tables, start_fields)
    grouped = sorted({field.target for field in subject.fields if field.in_group})
    if grouped:
        more = f" and {len(grouped) - _NAMED} more" if len(grouped) > _NAMED else ""
        message = f"relocations to sections of groups that can be discarded: {', '.join(grouped[:_NAMED])}{more}"
        first = next(field.offset for field in subject.fields if field.in_group)
        yield Finding(c.RELOCATION_COMDAT, message, first)


def _pcrel(
    subject: Subject, tables: Sequence[TableReading], start_fields: dict[int, Described]
) -> Iterator[Finding]:
    for number, table in enumerate(tables):
        if table.header.version < 2:  # it has no such flag
            continue
        flagged = bool(table.header.flags & Flag.FDE_FUNC_START_PCREL)
        for field in subject.fields:
            function = start_fields.get(field.offset)
            if function is None or function.table != number or field.pc_relative in (None, flagged):
                continue
            kind = "relative to the field" if field.pc_relative else "absolute"
            message = f"the flag is {'set' if flagged else 'not set'}, but the relocation is {kind}"
            yield Finding(c.RELOCATION_PCREL, message, field.offset, function.start, subject.name_of(function.start))
            break
