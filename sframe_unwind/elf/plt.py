"""Names the stubs of the procedure linkage table as debuggers do: ``puts@plt``.

A stub loads the address of a function from its slot in the global offset table; the relocation of the slot names the
function.  So the stubs are known whatever the layout of the section is, which differs between linkers and options.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Callable, NamedTuple

from sframe_unwind.elf._reader import ElfSection, Reader
from sframe_unwind.elf.constants import ENTRY, SHT_RELA, SYMBOL
from sframe_unwind.elf.symbols import Symbol

_SECTION_NAMES = (".plt", ".plt.sec", ".plt.got", ".iplt")


class _Load(NamedTuple):
    """A load from a slot."""

    stub: int
    """Offset of its stub in the section."""
    slot: int
    """Address of the slot."""


class _Machine(NamedTuple):
    """How stubs look."""

    relocations: tuple[int, int]
    """Types of the relocations of slots: ``R_*_JUMP_SLOT``, ``R_*_GLOB_DAT``."""
    loads: Callable[[bytes, int, int], Iterator[_Load]]
    """``(contents, address, size of an entry)``: yields the loads of a section."""


def _amd64(code: bytes, address: int, entry: int) -> Iterator[_Load]:
    for found in re.finditer(rb"\xff\x25(....)", code, re.DOTALL):  # jmp *slot(%rip)
        (distance,) = struct.unpack("<i", found[1])
        yield _Load(found.start() - found.start() % (entry or 16), address + found.end() + distance)


def _aarch64(code: bytes, address: int, _entry: int) -> Iterator[_Load]:
    words = struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4])
    for number, (adrp, ldr) in enumerate(zip(words, words[1:])):
        if adrp & 0x9F00001F == 0x90000010 and ldr & 0xFFC003FF == 0xF9400211:  # adrp x16, PAGE; ldr x17, [x16, OFFSET]
            begins_with_bti = number > 0 and words[number - 1] == 0xD503245F
            page = (address + 4 * number & ~0xFFF) + (_pages(adrp) << 12)
            yield _Load(4 * number - 4 * begins_with_bti, page + (ldr >> 10 & 0xFFF) * 8)


def _pages(adrp: int) -> int:
    """Return the distance that an ``adrp`` instruction has, in pages."""
    distance = adrp >> 3 & 0x1FFFFC | adrp >> 29 & 3
    return distance - (1 << 21) if distance >> 20 else distance


def _s390x(code: bytes, address: int, _entry: int) -> Iterator[_Load]:
    for found in re.finditer(rb"\xc0\x10(....)", code, re.DOTALL):  # larl %r1, slot
        (distance,) = struct.unpack(">i", found[1])
        yield _Load(found.start(), address + found.start() + 2 * distance)


_MACHINES = {
    "EM_X86_64": _Machine((7, 6), _amd64),
    "EM_AARCH64": _Machine((1026, 1025), _aarch64),
    "EM_S390": _Machine((11, 10), _s390x),
}


def stubs(reader: Reader) -> list[Symbol]:
    """Return a symbol for each stub of a linked file; none for an object file, or one of another machine.

    :raises FileError: the file is malformed.
    """
    machine = _MACHINES.get(reader.machine)
    sections = [section for section in reader.sections if section.name in _SECTION_NAMES]
    if machine is None or not sections or reader.is_object:
        return []
    names = dict(_slots(reader, machine))
    return [stub for section in sections for stub in _of_section(reader, section, machine, names)]


def _of_section(reader: Reader, section: ElfSection, machine: _Machine, names: dict[int, str]) -> Iterator[Symbol]:
    code, address = reader.contents(section), section.address
    found = {load.stub: load.slot for load in machine.loads(code, address, section.entry_size) if load.slot in names}
    starts = sorted(found)
    for start, end in zip(starts, [*starts[1:], len(code)]):
        yield Symbol(address + start, end - start, False, f"{names[found[start]]}@plt", address + len(code))


def _slots(reader: Reader, machine: _Machine) -> Iterator[tuple[int, str]]:
    """Yield the address of each slot, and the name of the function whose address it gets."""
    for table in reader.sections:
        if table.type != SHT_RELA:
            continue
        entries = [
            entry
            for entry in reader.records(ENTRY, reader.contents(table))
            if entry[1] & 0xFFFFFFFF in machine.relocations
        ]
        if not entries:
            continue
        symbols = reader.section(table.link)
        names = reader.strings(symbols)
        places = [at for at, *_ in reader.records(SYMBOL, reader.contents(symbols))]
        for slot, info, _ in entries:
            if 0 < info >> 32 < len(places):
                at = places[info >> 32]
                yield slot, names[at : max(names.find(b"\0", at), at)].decode("utf-8", "backslashreplace")
