"""The machine-dependent parts of the code in ELF files: relocations, and stubs of the PLT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Callable

from sframe_unwind.named_tuple import NamedTuple


class SlotLoad(NamedTuple):
    """A load from a slot of the global offset table, in a stub of the procedure linkage table (PLT)."""

    stub: int
    """Offset of its stub in the section, in bytes."""
    slot: int
    """Address of the slot."""


Operation = Callable[[int, int, int], int]
"""``(value of the symbol plus addend, address of the field, contents of the field)``: returns the new contents, of
which the field gets the low bytes.  All numbers are unsigned."""


def absolute(value: int, _place: int, _before: int) -> int:
    """Return the value."""
    return value


def relative(value: int, place: int, _before: int) -> int:
    """Return the distance of the value from the field."""
    return value - place


def relative_halfwords(value: int, place: int, _before: int) -> int:
    """Return the distance of the value from the field, in units of 2 bytes."""
    return (value - place) // 2


class FieldRelocation(NamedTuple):
    """The way in which a relocation type fills its field.

    Several relocations may fill the same field one after the other: RISC-V adds a symbol and subtracts another one.
    """

    size: int
    """Size of the field in bytes."""
    operation: Operation

    @property
    def pc_relative(self) -> bool:
        """Whether the field gets its distance from the value."""
        return self.operation in (relative, relative_halfwords)


class ElfCode(NamedTuple):
    """Facts of one machine, from the ELF supplement of its psABI and the sources of the linkers."""

    slot_relocations: tuple[int, int]
    """Types of the relocations of slots: ``R_*_JUMP_SLOT``, ``R_*_GLOB_DAT``."""
    relative_relocation: int
    """Type of the relocation that adds the load bias: ``R_*_RELATIVE``."""
    fields: Mapping[int, FieldRelocation]
    """Maps a relocation type to its effect, for fields of whole bytes in code and constants."""
    relocate_instruction: Callable[[int, int, int, int], int]
    """``(instruction, type, address, value)``: returns a 4-byte instruction whose operand a relocation fills in; the
    same one for other types."""
    plt_header_size: int
    """Size of the first entry of a lazy PLT in bytes."""
    slot_loads: Callable[[bytes, int, int], Iterator[SlotLoad]]
    """``(contents of a PLT, its address, size of an entry)``: yields the loads of its stubs."""


def unchanged(instruction: int, _type: int, _address: int, _value: int) -> int:
    """Return an instruction as it is, for machines whose relocations fill in whole bytes."""
    return instruction
