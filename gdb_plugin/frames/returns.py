"""Tells whether a frame that was left to GDB is a signal frame, and whether it returns to another frame."""

from __future__ import annotations

from gdb_plugin.process.memory import read
from gdb_plugin.process.process import Process
from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.arch import PlaceKind
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind_rule import CFA


def is_signal_frame(process: Process, pc: int) -> bool:
    """Return whether a frame with a pc is a signal frame, or an exception of a kernel."""
    found = process.modules.results[pc]
    if isinstance(found, Found) and found.signal:
        return True
    place = process.entry_places.get(pc - 1) or process.entry_places.get(pc)
    if place is not None:
        return place.kind is PlaceKind.EXCEPTION
    codes = [frame.code for frame in process.arch.signal_frames]
    try:
        return read(pc, max(map(len, codes))).startswith(tuple(codes))
    except MemoryReadError:
        return False


def returns_to(process: Process, inner_pc: int, pc: int, sp: int) -> bool:
    """Return whether memory shows that a frame that was left to GDB returns to another frame.

    :param inner_pc: pc of the frame.
    :param pc: pc of the other frame; ``sp`` is also of that frame.
    """
    cfa = sp - process.arch.sp_from_cfa & ADDRESS_MASK
    process.read_word.forget()
    offsets = {_ra_offset(process, address) for address in (inner_pc, inner_pc - 1)} - {None}
    for offset in offsets:
        try:
            word = process.read_word(cfa + (offset or 0) & ADDRESS_MASK)
        except MemoryReadError:
            continue
        if pc in (word, process.arch.strip(word, process.arch.pac_mask)):
            return True
    return not offsets  # not known; most frames are called


def _ra_offset(process: Process, address: int) -> int | None:
    """Return the offset of the return address from the CFA; ``None``: it is elsewhere, or unknown."""
    found = process.modules.results[address]
    rule = found.rule if isinstance(found, Found) else process.modules.cfi_rule(address)
    if rule is None:
        return -WORD_SIZE if process.arch.ra is None else None
    place = rule.ra
    return place.offset if place is not None and place.base == CFA and place.in_memory else None
