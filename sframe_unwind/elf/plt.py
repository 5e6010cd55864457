"""Names the stubs of the procedure linkage table as debuggers do: ``puts@plt``.

A stub loads the address of a function from its slot in the global offset table; the relocation of the slot names the
function.  So the stubs are found in any layout of the section, which differs between linkers and options.
"""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.arch import of_elf
from sframe_unwind.arch.elf_code import ElfCode
from sframe_unwind.elf.constants import ENTRY, SHT_RELA, SYMBOL
from sframe_unwind.elf.contents import Reader
from sframe_unwind.elf.records import SectionHeader
from sframe_unwind.elf.symbols import Symbol

_SECTION_NAMES = (".plt", ".plt.sec", ".plt.got", ".iplt")


def stubs(reader: Reader) -> list[Symbol]:
    """Return a symbol for each stub of a linked file; none for an object file, or one of another machine.

    :raises FileError: the file is malformed.
    """
    arch = of_elf(reader.machine, reader.byteorder)
    sections = [section for section in reader.sections if section.name in _SECTION_NAMES]
    if arch is None or not sections or reader.is_object:
        return []
    names = dict(_slots(reader, arch.elf_code))
    return [stub for section in sections for stub in _of_section(reader, section, arch.elf_code, names)]


def _of_section(reader: Reader, section: SectionHeader, machine: ElfCode, names: dict[int, str]) -> Iterator[Symbol]:
    code, address = reader.contents(section), section.address
    found = {
        load.stub: load.slot for load in machine.slot_loads(code, address, section.entry_size) if load.slot in names
    }
    starts = sorted(found)
    for start, end in zip(starts, [*starts[1:], len(code)]):
        yield Symbol(address + start, end - start, False, f"{names[found[start]]}@plt", address + len(code))


def _slots(reader: Reader, machine: ElfCode) -> Iterator[tuple[int, str]]:
    """Yield the address of each slot, and the name of the function whose address it gets."""
    for table in reader.sections:
        if table.type != SHT_RELA:
            continue
        entries = [
            entry
            for entry in reader.records(ENTRY, reader.contents(table))
            if entry[1] & 0xFFFFFFFF in machine.slot_relocations
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
