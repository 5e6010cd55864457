"""One entry of ORC: how it is encoded, and the rule that it stands for."""

from __future__ import annotations

import struct
from enum import Enum
from typing import NamedTuple

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.cfi.rules import NoRule, Said
from sframe_unwind.errors import FormatError
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa

_ENTRY = struct.Struct("<hhBB")
"""Offsets for SP and BP; their bases, four bits each; type and flags."""
SIZE = _ENTRY.size
"""Of an entry, in bytes."""

_UNDEFINED, _PREVIOUS_SP, _BP_INDIRECT, _SP_INDIRECT = 0, 1, 8, 9
_BP, _SP = 6, 7
_REGISTERS = {2: 1, 3: 5, 4: _BP, 5: _SP, 6: 10, 7: 13}
"""DWARF numbers by those of ORC: rdx, rdi, rbp, rsp, r10, r13."""


class OrcLayout(Enum):
    """How the last byte of an entry is encoded."""

    WITH_END = "Linux before 6.3"
    """Two bits for the type, a flag for the end of the stack."""
    WITH_HEADER = "Linux 6.4 and later"
    """Three bits for the type, a flag for signal frames.  Such files have a section ``.orc_header``."""


class OrcKind(Enum):
    """The kinds of entries, which differ in how the caller is found."""

    UNDEFINED = "undefined"
    """Nothing: objtool did not reach the code, or it is the end of a section."""
    END = "end of the stack"
    CALL = "call"
    """The return address is below the caller's SP."""
    REGISTERS = "registers"
    """The caller was interrupted, and ``struct pt_regs`` has its registers."""
    PARTIAL_REGISTERS = "interrupt frame"
    """Likewise, but only what the processor pushes is saved: the end of ``struct pt_regs``, from ``ip`` on."""


_KINDS = {
    OrcLayout.WITH_END: (OrcKind.CALL, OrcKind.REGISTERS, OrcKind.PARTIAL_REGISTERS),
    OrcLayout.WITH_HEADER: (
        *(OrcKind.UNDEFINED, OrcKind.END),
        *(OrcKind.CALL, OrcKind.REGISTERS, OrcKind.PARTIAL_REGISTERS),
    ),
}
_TYPE_BITS = {OrcLayout.WITH_END: 2, OrcLayout.WITH_HEADER: 3}


class OrcEntry(NamedTuple):
    """What ORC says from one address to the next entry's."""

    kind: OrcKind
    place: RegisterRule
    """The caller's SP, which is the CFA; with ``registers`` the address of ``struct pt_regs``, with ``interrupt frame``
    of that frame."""
    added: int
    """What is added to :attr:`place` where that is a word in memory, in bytes."""
    bp: RegisterRule | None
    """``None``: unchanged."""

    @property
    def said(self) -> Said | None:
        """The rule; ``None``: there is none."""
        if self.kind is OrcKind.UNDEFINED:
            return None
        if self.kind is OrcKind.END:
            return OUTERMOST
        if self.kind is not OrcKind.CALL:
            return NoRule(f"ORC: {self.kind.value}")
        rule = UnwindRule(self.place, saved_at_cfa(-WORD_SIZE), self.bp)
        return NoRule("ORC: the CFA is a word in memory plus a constant", rule, self.added) if self.added else rule


def decode(data: bytes, layout: OrcLayout) -> OrcEntry:
    """Decode an entry.

    :raises FormatError: the entry has a type, a flag or a register that the layout does not have.
    """
    sp_offset, bp_offset, bases, flags = _ENTRY.unpack(data)
    bits = _TYPE_BITS[layout]
    kinds, kind, rest = _KINDS[layout], flags & (1 << bits) - 1, flags >> bits
    if rest > 1 or kind >= len(kinds):
        raise FormatError(f"ORC entry {data.hex()}: type and flags {flags:#x} are not those of {layout.value}")
    found = kinds[kind]
    if layout is OrcLayout.WITH_END and bases & 0xF == _UNDEFINED:
        found = OrcKind.END if rest else OrcKind.UNDEFINED
    if found in (OrcKind.UNDEFINED, OrcKind.END):
        return OrcEntry(found, RegisterRule(_SP, 0, False), 0, None)
    place, added = _place(bases & 0xF, sp_offset, data)
    return OrcEntry(found, place, added, _bp(bases >> 4, bp_offset, data))


def _place(base: int, offset: int, data: bytes) -> tuple[RegisterRule, int]:
    if base == _SP_INDIRECT:  # the offset is added to the word at SP
        return RegisterRule(_SP, 0, True), offset
    if base == _BP_INDIRECT:
        return RegisterRule(_BP, offset, True), 0
    if base not in _REGISTERS:
        raise FormatError(f"ORC entry {data.hex()}: {base} is no register that SP is computed from")
    return RegisterRule(_REGISTERS[base], offset, False), 0


def _bp(base: int, offset: int, data: bytes) -> RegisterRule | None:
    if base == _UNDEFINED:
        return None
    if base == _PREVIOUS_SP:
        return RegisterRule(CFA, offset, True)
    if base in _REGISTERS and _REGISTERS[base] == _BP:
        return RegisterRule(_BP, offset, True)
    raise FormatError(f"ORC entry {data.hex()}: {base} is no register that BP is saved relative to")
