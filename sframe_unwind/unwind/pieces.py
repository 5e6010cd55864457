"""Lists the rules of a whole SFrame section, each with the range of code for which it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.arch import Arch
from sframe_unwind.memory import ReadMemory
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.stub_rows import Piece, is_plt, rules_of_plt


def pieces_of(section: Section, arch: Arch, read: ReadMemory) -> Iterator[Sequence[Piece]]:
    """Yield the code of each function with the rules of its rows, and each part of a PLT stub as one piece.

    :param read: reads the memory of the process, for the stubs, whose code may refute their rows.
    :raises FormatError: a row is malformed.
    """
    for table in section.tables:
        for function in table.functions():
            if is_plt(function, arch):
                yield from ([piece] for piece in rules_of_plt(function, arch, read))
                continue
            offsets, rules = table.interpreted_rows(function, table.rules[function.fde.fde_type])
            starts = [function.start + offset for offset in offsets]
            yield list(zip(starts, [*starts[1:], function.end], rules))
