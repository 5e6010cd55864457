"""The decoder of this project."""

from __future__ import annotations

from typing import Any

from lab.readers.notation import of_rule
from lab.readers.protocol import RefusedError, Request, serve
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Miss


def read(request: Request) -> list[Any]:
    """Return the row for each address."""
    try:
        section = Section(request.section, request.address)
    except FormatError as error:
        raise RefusedError(str(error)) from error
    return [_row(section, pc) for pc in request.pcs]


def _row(section: Section, pc: int) -> Any:
    try:
        found = section.lookup(pc)
    except FormatError as error:
        return {"error": str(error)}
    return None if isinstance(found, Miss) else of_rule(found.rule)


if __name__ == "__main__":
    serve(read)
