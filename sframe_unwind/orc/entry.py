"""One entry of ORC: its encoding, and its rule."""

from __future__ import annotations

import struct
from enum import Enum

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.cfi.rules import NoRule, Said
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import CFA, OUTERMOST, RegisterRule, UnwindRule, saved_at_cfa

_ENTRY = struct.Struct("<hhBB")
"""Offsets for SP and BP; their bases, four bits each; type and flags."""
SIZE = _ENTRY.size
"""Size of an entry, in bytes."""
NOTHING = bytes(SIZE)
"""An empty entry in all layouts."""

_BP, _SP = 6, 7
"""DWARF numbers of BP and SP."""


class OrcLayout(Enum):
    """The encoding of the last two bytes of an entry."""

    WITH_END = "Linux before 6.3"
    """Two bits for the type, a flag for the end of the stack."""
    WITH_BOTH = "Linux 6.3"
    """Two bits for the type, a flag for signal frames, and one for the end of the stack."""
    WITH_SIGNAL = "Linux since 6.4"
    """Three bits for the type, a flag for signal frames."""
    RENUMBERED = "Linux 7.2"
    """The same, but registers have other numbers."""


_HASHES = {
    bytes.fromhex("db84aed4 103b31dd 51e017f8 f79783ca 985c2c51"): OrcLayout.WITH_BOTH,
    bytes.fromhex("fe5d32bf 581bd63b 2ca9a5c6 5ba5a625 eab3fe24"): OrcLayout.WITH_SIGNAL,
    bytes.fromhex("137c36ad 7627c4dd 55932176 bb0ecdbd 5041fc82"): OrcLayout.RENUMBERED,
}
HASH_SIZE = 20
"""Size of ``.orc_header``, in bytes."""


def layout_of(header: bytes | None) -> OrcLayout:
    """Return the layout of a kernel's entries.

    :param header: the contents of ``.orc_header``, a hash of the layout's source (``scripts/orc_hash.sh``); ``None``:
        there is none, as before Linux 6.4.
    :raises FormatError: no known layout has this hash.
    """
    if header is None:
        return OrcLayout.WITH_END
    found = _HASHES.get(header)
    if found is None:
        raise FormatError(f".orc_header: no known layout of ORC has the hash {header.hex()}")
    return found


class OrcKind(Enum):
    """The kinds of entries, which differ in the way in which the caller is found."""

    UNDEFINED = "undefined"
    """No information: objtool did not reach the code, or it is the end of a section."""
    END = "end of the stack"
    CALL = "call"
    """The return address is below the caller's SP."""
    REGISTERS = "registers"
    """The caller was interrupted, and ``struct pt_regs`` has its registers."""
    PARTIAL_REGISTERS = "interrupt frame"
    """The same, but only the registers that the processor pushes are saved: the end of ``struct pt_regs``, from
    ``ip``."""


class _Flags(NamedTuple):
    """The last byte of an entry."""

    kinds: tuple[OrcKind, ...]
    """The kinds by type."""
    type_mask: int
    signal: int
    """The flag that shows whether a function was interrupted at a pc, which also follows from the kind."""
    end: int


_WITH_REGISTERS = (OrcKind.CALL, OrcKind.REGISTERS, OrcKind.PARTIAL_REGISTERS)
_FLAGS = {
    OrcLayout.WITH_END: _Flags(_WITH_REGISTERS, 3, signal=0, end=4),
    OrcLayout.WITH_BOTH: _Flags(_WITH_REGISTERS, 3, signal=4, end=8),
    OrcLayout.WITH_SIGNAL: _Flags((OrcKind.UNDEFINED, OrcKind.END, *_WITH_REGISTERS), 7, signal=8, end=0),
}
_FLAGS[OrcLayout.RENUMBERED] = _FLAGS[OrcLayout.WITH_SIGNAL]


class _Bases(NamedTuple):
    """The meaning of the four bits of a base: ``ORC_REG_*``.  0: undefined."""

    previous_sp: int
    bp_indirect: int
    sp_indirect: int
    registers: dict[int, int]
    """DWARF numbers of the bases that are registers."""


_FIRST_BASES = _Bases(1, 8, 9, {2: 1, 3: 5, 4: _BP, 5: _SP, 6: 10, 7: 13})  # rdx, rdi, rbp, rsp, r10, r13
_LATER_BASES = _Bases(8, 10, 9, {1: 0, 2: 1, 3: _SP, 4: _BP, 5: 5, 6: 10, 7: 13})  # rax, rdx, rsp, rbp, rdi, r10, r13
_UNDEFINED = 0


class OrcEntry(NamedTuple):
    """The rule of ORC from one address to that of the next entry."""

    kind: OrcKind
    place: RegisterRule
    """The caller's SP, which is the CFA.  For the kind ``registers``, the address of ``struct pt_regs``; for the kind
    ``interrupt frame``, the address of that frame."""
    added: int
    """The number of bytes to add to :attr:`place` if that is a word in memory."""
    bp: RegisterRule | None
    """Rule of BP; ``None``: unchanged."""

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
    kinds, type_mask, signal, end = _FLAGS[layout]
    kind = flags & type_mask
    if flags & ~(type_mask | signal | end) or kind >= len(kinds):
        raise FormatError(f"ORC entry {data.hex()}: type and flags {flags:#x} are not those of {layout.value}")
    found = kinds[kind]
    if OrcKind.END not in kinds and bases & 0xF == _UNDEFINED:
        found = OrcKind.END if flags & end else OrcKind.UNDEFINED
    if found in (OrcKind.UNDEFINED, OrcKind.END):
        return OrcEntry(found, RegisterRule(_SP, 0, False), 0, None)
    meanings = _LATER_BASES if layout is OrcLayout.RENUMBERED else _FIRST_BASES
    place, added = _place(meanings, bases & 0xF, sp_offset, data)
    return OrcEntry(found, place, added, _bp(meanings, bases >> 4, bp_offset, data))


def _place(meanings: _Bases, base: int, offset: int, data: bytes) -> tuple[RegisterRule, int]:
    if base == meanings.sp_indirect:  # the offset is added to the word at SP
        return RegisterRule(_SP, 0, True), offset
    if base == meanings.bp_indirect:
        return RegisterRule(_BP, offset, True), 0
    if base not in meanings.registers:
        raise FormatError(f"ORC entry {data.hex()}: {base} is not a register that SP is computed from")
    return RegisterRule(meanings.registers[base], offset, False), 0


def _bp(meanings: _Bases, base: int, offset: int, data: bytes) -> RegisterRule | None:
    if base == _UNDEFINED:
        return None
    if base == meanings.previous_sp:
        return RegisterRule(CFA, offset, True)
    if meanings.registers.get(base) == _BP:
        return RegisterRule(_BP, offset, True)
    raise FormatError(f"ORC entry {data.hex()}: {base} is not a register that BP is saved relative to")
