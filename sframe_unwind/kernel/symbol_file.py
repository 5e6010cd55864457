"""Makes a symbol file with DWARF CFI for a kernel's entry code: debuggers take signal frames only from CFI."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import Arch, PlaceKind
from sframe_unwind.cfi import encode
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.elf.assembly import Part, assembled, plain_header
from sframe_unwind.elf.constants import ET_EXEC, SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SHT_PROGBITS
from sframe_unwind.elf.records import SectionHeader, new_header
from sframe_unwind.kernel.entry_code import EntryPlace
from sframe_unwind.kernel.linux import SavedRegisters
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.orc import OrcEntry, OrcKind
from sframe_unwind.unwind_rule import CFA, UNDEFINED, RegisterRule, UnwindRule, saved_at_cfa

_SIGNAL_FRAME = "zS"
"""The augmentation of signal frames: the caller's pc is not a return address, and its stack can be anywhere."""


def symbol_file(arch: Arch, machine: int, places: Iterable[EntryPlace], saved: SavedRegisters) -> bytes:
    """Return an ELF file with ``.debug_frame`` for the places of entry code.

    The kernel's own file is loaded at the addresses of the places, so the file is loaded without an offset.

    :param machine: ``e_machine`` of the kernel's file.
    """
    mark = STRUCT_MARKS[arch.byteorder]
    data = encode.cie(_SIGNAL_FRAME, arch.pc, b"", mark)
    of_functions = len(data)
    data += encode.cie("", arch.pc, b"", mark)
    for place in (one for one in places if not one.is_in_c):
        code = _instructions(arch, place.kind, saved) if place.orc is None else _by_orc(arch, place.orc, saved)
        is_signal = place.kind not in (PlaceKind.FUNCTION, PlaceKind.LEAF)
        if code:
            cie = 0 if is_signal else of_functions
            data += encode.fde(
                cie_offset=cie,
                start=place.start,
                size=place.end - place.start,
                augmented=is_signal,
                code=code,
                mark=mark,
            )
    return _elf(machine, arch.byteorder, data)


def _instructions(arch: Arch, kind: PlaceKind, saved: SavedRegisters) -> bytes:
    if kind is PlaceKind.EXCEPTION:
        code = encode.cfa(RegisterRule(arch.sp, saved.size, False))
        for number, offset in saved.registers.items():
            code += encode.register(number, saved_at_cfa(offset - saved.size))
        if saved.user_mode is not None:
            # If the plugin does not claim the frame, GDB continues in user space, and searches all of it for a
            # prologue.
            flags, bit = saved.user_mode
            code += encode.register_unless(arch.pc, saved.registers[arch.pc] - saved.size, flags - saved.size, bit)
        return code
    if kind is PlaceKind.LEAF:
        code = encode.cfa(RegisterRule(arch.sp, -arch.sp_from_cfa, False))
        return code + encode.register(arch.pc, RegisterRule(arch.ra or 0, 0, False))
    if kind is PlaceKind.STACK_SWITCH:
        record = arch.frame_record
        size = record.sp - arch.sp_from_cfa
        code = encode.cfa(RegisterRule(arch.fp, size, False))
        code += encode.register(arch.fp, saved_at_cfa(record.fp - size))
        return code + encode.register(arch.pc, saved_at_cfa(record.pc - size))
    return encode.cfa(RegisterRule(arch.sp, 0, False)) + encode.register(arch.pc, UNDEFINED)


def _by_orc(arch: Arch, entry: OrcEntry, saved: SavedRegisters) -> bytes:
    """Return the instructions for an entry of ORC; empty: for a switch of stacks, as the functions have CFI."""
    said = entry.said
    if isinstance(said, NoRule) and said.rule is not None:
        return b""
    if isinstance(said, UnwindRule) and said.cfa is not None:
        code = encode.cfa(said.cfa) + encode.register(arch.pc, said.ra)
        return code + encode.register(arch.fp, said.fp)
    if entry.kind is OrcKind.END:
        return _instructions(arch, PlaceKind.TASK_START, saved)
    registers, start = saved.registers, 0
    if entry.kind is OrcKind.PARTIAL_REGISTERS:
        registers, start = {number: registers[number] for number in (arch.pc, arch.sp)}, registers[arch.pc]
    base, offset, _ = entry.place
    code = encode.cfa(RegisterRule(base, offset + saved.size - start, False))
    for number, place in registers.items():
        code += encode.register(number, saved_at_cfa(place - saved.size))
    if arch.fp not in registers and entry.bp is not None and entry.bp.base == CFA:
        code += encode.register(arch.fp, saved_at_cfa(entry.bp.offset + start - saved.size))
    return code


def _elf(machine: int, byteorder: ByteOrder, debug_frame: bytes) -> bytes:
    """Return an ELF file.  It has an empty section of code, by which GDB relocates CFI."""
    code = SectionHeader(type=SHT_NOBITS, flags=SHF_ALLOC | SHF_EXECINSTR, alignment=1)
    parts = (
        Part(b"", SectionHeader(), b""),
        Part(b".text", code, b""),
        Part(b".debug_frame", plain_header(SHT_PROGBITS, debug_frame), debug_frame),
    )
    return assembled(new_header(ET_EXEC, machine, byteorder), parts)
