"""Rows of procedure linkage tables (PLTs), checked against the code of the stubs.

Linkers write these rows themselves, and GNU ld writes some that are wrong (docs/edge-cases.md, item 31).  A debugger
that steps into the stub and gets a wrong caller from such a row loses its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sframe_unwind.arch import Arch
from sframe_unwind.arch.base import PltStub
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function, Match
from sframe_unwind.unwind_rule import UnwindRule

_MAX_SIZE = 32
"""Size of the largest stub of any linker, in bytes."""
_MAX_STUBS_OF_FUNCTION = 16
"""Number of stubs of one FDE that :func:`wrong_rows` checks.  All stubs of one PLT have the same code."""
_MAX_STUBS = 1024
"""Number of stubs of one section that it checks, so that a hostile section does not keep the user waiting."""

Piece = tuple[int, int, UnwindRule]
"""Start and end address of code with one rule, and the rule."""


class WrongRow(NamedTuple):
    """A row that the code of a stub refutes."""

    address: int
    """The first address at which the code refutes it."""
    row: UnwindRule
    code: UnwindRule
    """The rule that the code proves there."""


def proven_rule(match: Match, pc: int, arch: Arch, read: ReadMemory) -> UnwindRule | None:
    """Return the rule that the code of a PLT stub proves for an address.

    ``None``: the function is not a PLT, the form of the stub is not known, or its code cannot be read.  Memory is read
    only for functions that have the rows of a PLT.

    :param match: the row for the address.
    :param pc: lookup address.
    """
    size = _stub_size(match.function, arch)
    if not size:
        return None
    start = pc - (pc - match.function.start) % size
    stub = _decoded(start, size, arch, read)
    return None if stub is None else stub.rule(pc - start)


def rules_of_plt(function: Function, arch: Arch, read: ReadMemory) -> Iterator[Piece]:
    """Yield the code of a PLT in pieces that have one rule: that of :func:`proven_rule`, or else that of the row.

    The pieces of each stub are yielded in descending order.

    :param function: a function for which :func:`is_plt` holds.
    :raises FormatError: a row is malformed.
    """
    size = _stub_size(function, arch)
    rows = function.rows()
    covered = rows[0][0] if rows else size
    for start in range(function.start, function.end, size):
        stub = _decoded(start, size, arch, read)
        end = min(start + size, function.end)
        for offset, rule in reversed(rows if stub is None else stub.parts):
            if start + offset < end and covered < end - start:
                yield start + max(offset, covered), end, rule
                end = start + offset


def is_plt(function: Function, arch: Arch) -> bool:
    """Return whether a function has the rows of a PLT, which are checked against its code."""
    return bool(_stub_size(function, arch))


def wrong_rows(section: Section, arch: Arch, read: ReadMemory) -> list[WrongRow]:
    """Return the rows of a section that the code of their stubs refutes.

    :raises FormatError: the section is malformed.
    """
    wrong: dict[tuple[int, int, int], WrongRow] = {}
    for function, start, size in islice(_stubs(section, arch), _MAX_STUBS):
        stub = _decoded(start, size, arch, read)
        if stub is None:
            continue
        rows = function.rows()
        for offset in sorted({at for at, _ in stub.parts} | {at for at, _ in rows if at < size}):
            row_start, rule = next(((at, rule) for at, rule in reversed(rows) if at <= offset), (0, None))
            proven = stub.rule(offset)
            if rule is not None and not agrees(rule, proven, arch):
                key = function.table.offset, function.number, row_start
                wrong.setdefault(key, WrongRow(start + offset, rule, proven))
    return list(wrong.values())


def _stubs(section: Section, arch: Arch) -> Iterator[tuple[Function, int, int]]:
    """Yield stubs: the function that contains the stub, start address and size in bytes."""
    for table in section.tables:
        for function in table.functions():
            size = _stub_size(function, arch)
            end = min(function.end, function.start + size * _MAX_STUBS_OF_FUNCTION)
            for start in range(function.start, end, size) if size else ():
                yield function, start, size


def _stub_size(function: Function, arch: Arch) -> int:
    """Return the size of each stub that a function consists of, in bytes; 0: it is not a PLT.

    The stubs of a PLT are the blocks of a mask FDE.  Its header has a separate FDE, which GNU ld 2.40 also writes
    for the first stub of ``.plt.sec``.
    """
    fde = function.fde
    if fde.pc_type is PcType.MASK:
        return fde.repetition_size
    header = arch.plt_header_rows
    is_header = 0 < fde.size <= _MAX_SIZE and fde.num_rows == len(header) and tuple(function.rows()) == header
    return fde.size if is_header else 0


def _decoded(start: int, size: int, arch: Arch, read: ReadMemory) -> PltStub | None:
    try:
        stub = arch.plt_stub(read(start, min(size, _MAX_SIZE)))
        if stub is None or stub.header is None:
            return stub
        header = arch.plt_stub(read(start + stub.header, _MAX_SIZE))
    except MemoryReadError:
        return None
    return stub if header is not None and header.is_header else None
