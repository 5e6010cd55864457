"""Counts the rows of SFrame that mode ``auto`` does not use, because CFI gives another caller."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind.pieces import pieces_of
from sframe_unwind.unwind.precedence import Precedence, Reason
from sframe_unwind.unwind.stub_rows import Piece


class PassedOver(NamedTuple):
    """The rows of one module that are not used for one reason."""

    reason: Reason
    rows: int
    """Number of rows; each part of a stub of a PLT counts as one."""
    first: int
    """The lowest address at which one is not used."""


def passed_over(module: Module, modules: Modules, precedence: Precedence) -> list[PassedOver]:
    """Return the rows of a module that are not used, by reason.

    All rows are looked up, which takes some 30 microseconds for each.

    :param modules: the modules of the process, which have its memory.
    :param precedence: decides for each address; without a judge, rows that the code would decide about are counted.
    :raises SFrameError: the SFrame section is malformed, or cannot be read.
    """
    section, read, found = module.section, modules.read, dict[Reason, tuple[int, int]]()
    if section is None or read is None or section.arch not in (None, modules.arch):
        return []
    for pieces in pieces_of(section, modules.arch, read):
        for piece in pieces:
            refused = next((pc for pc in _addresses(module, piece) if precedence.prefers_cfi(pc)), None)
            if refused is not None:
                reason = precedence.decisions[refused].reason
                rows, first = found.get(reason, (0, refused))
                found[reason] = rows + 1, min(first, refused)
    return [PassedOver(reason, *numbers) for reason, numbers in found.items()]


def _addresses(module: Module, piece: Piece) -> Iterator[int]:
    """Yield the first address of a row of SFrame, and each at which the CFI's row changes within it."""
    pc, end, _ = piece
    while pc < end:
        yield pc
        try:
            following = module.cfi_row_end(pc)
        except SFrameError:
            return
        if following is None:
            return
        pc = following
