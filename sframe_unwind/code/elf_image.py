"""The :class:`CodeImage` of an ELF file."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from sframe_unwind.code.code_relocations import relocate
from sframe_unwind.code.exception_tables import ExceptionTables
from sframe_unwind.code.image import CodeImage, CodeSection, Plt
from sframe_unwind.code.interpretation import LandingPads
from sframe_unwind.code.machines import Machine
from sframe_unwind.code.not_returning import is_not_returning
from sframe_unwind.elf.cfi import EH_FRAME
from sframe_unwind.elf.relocation import SYMBOL, Relocations, records, symbol_values
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import Symbols

_RELATIVE = {"EM_X86_64": 8, "EM_AARCH64": 1027, "EM_S390": 12}
"""The type of a relocation that adds where the file is loaded."""
_PLT_HEADERS = {"EM_X86_64": 16, "EM_AARCH64": 32, "EM_S390": 32}
"""Sizes in bytes."""
_RELA = "QQq"
_FUNCTIONS, _GLOBAL = (2, 10), (1, 2)
"""``STT_FUNC`` and ``STT_GNU_IFUNC``; ``STB_GLOBAL`` and ``STB_WEAK``."""


def image_of(file: ELFFile, machine: Machine, layout: Layout, symbols: Symbols) -> CodeImage:
    """Read what an ELF file has of code, constants and relocations."""
    external: dict[int, str] = {}
    sections = []
    for number, section in enumerate(file.iter_sections()):
        flags = section["sh_flags"]
        if not flags & SH_FLAGS.SHF_ALLOC or flags & SH_FLAGS.SHF_TLS or section["sh_type"] == "SHT_NOBITS":
            continue
        data, start = section.data(), layout.addresses[number]
        if layout.relocatable:
            data, found = relocate(file, number, data, layout)
            external.update(found)
        executable, writable = bool(flags & SH_FLAGS.SHF_EXECINSTR), bool(flags & SH_FLAGS.SHF_WRITE)
        sections.append(CodeSection(start, data, executable, writable))
    plts = tuple(_plts(file, machine))
    order: Literal["little", "big"] = "little" if file.little_endian else "big"
    not_returning = {symbol.address for symbol in symbols if is_not_returning(symbol.name)}
    not_returning.update(address for address, name in _plt_names(file, plts) if is_not_returning(name))
    entry_point, pointers = file["e_entry"] or None, _Pointers(file)
    image = CodeImage(sections, order, frozenset(not_returning), external, pointers, plts, entry_point)
    image.reachable = frozenset(filter(image.is_code, {*pointers.values(), *_global_functions(file, layout)}))
    return image


def _global_functions(file: ELFFile, layout: Layout) -> Iterator[int]:
    """Yield the addresses of functions that other files can call."""
    for number, table in enumerate(file.iter_sections()):
        if table["sh_type"] in ("SHT_DYNSYM", "SHT_SYMTAB"):
            addresses = symbol_values(file, number, layout.addresses)
            for (_, info, _, section, _, _), address in zip(records(file, SYMBOL, table.data()), addresses):
                if info & 0xF in _FUNCTIONS and info >> 4 in _GLOBAL and section:
                    yield address


class _Pointers(Mapping[int, int]):
    """What the relative relocations of a linked file fill in, read when first asked for."""

    def __init__(self, file: ELFFile) -> None:
        kind = _RELATIVE.get(file["e_machine"])
        self._offsets, self._values = array("Q"), array("Q")
        if file["e_type"] == "ET_REL":
            return
        pairs = [
            (offset, addend & (1 << 64) - 1)
            for section in file.iter_sections("SHT_RELA")
            for offset, info, addend in records(file, _RELA, section.data())
            if info & 0xFFFFFFFF == kind
        ]
        pairs.sort()
        self._offsets.extend(offset for offset, _ in pairs)
        self._values.extend(value for _, value in pairs)

    def __getitem__(self, address: int) -> int:
        at = bisect_left(self._offsets, address)
        if at < len(self._offsets) and self._offsets[at] == address:
            return self._values[at]
        raise KeyError(address)

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)


def _plts(file: ELFFile, machine: Machine) -> Iterator[Plt]:
    for section in file.iter_sections():
        if not section.name.startswith((".plt", ".iplt")) or not section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
            continue
        start, size = section["sh_addr"], section["sh_size"]
        header = _PLT_HEADERS.get(file["e_machine"], 0) if section.name == ".plt" else 0
        entry_size = section["sh_entsize"]
        if entry_size not in machine.plt_entry_sizes or section.name != ".plt":
            count = _count(file)
            fitting = [size for size in machine.plt_entry_sizes if header + size * count == section["sh_size"]]
            entry_size = fitting[0] if fitting else entry_size or machine.plt_entry_sizes[0]
        if size and entry_size >= 8:
            yield Plt(start, start + size, start + header, entry_size)


def _plt_relocations(file: ELFFile) -> Any:
    return next((section for section in file.iter_sections("SHT_RELA") if section.name == ".rela.plt"), None)


def _count(file: ELFFile) -> int:
    section = _plt_relocations(file)
    return section["sh_size"] // 24 if section is not None else 0


def _plt_names(file: ELFFile, plts: tuple[Plt, ...]) -> Iterator[tuple[int, str]]:
    """Yield address and name of each entry: they are in the order of their relocations."""
    section = _plt_relocations(file)
    if section is None or not plts:
        return
    table = file.get_section(section["sh_link"])
    if table is None or table["sh_type"] not in ("SHT_DYNSYM", "SHT_SYMTAB"):
        return
    strings = file.get_section(table["sh_link"]).data()
    names = []
    for entry in records(file, SYMBOL, table.data()):
        end = strings.find(b"\0", entry[0])
        names.append(strings[entry[0] : end].decode("utf-8", "backslashreplace"))
    for number, (_, info, _) in enumerate(records(file, _RELA, section.data())):
        symbol = info >> 32
        if symbol < len(names):
            for plt in plts:
                address = plt.first + number * plt.entry_size
                if address + plt.entry_size <= plt.end:
                    yield address, names[symbol]


def exception_tables(file: ELFFile, machine: Machine, layout: Layout, image: CodeImage) -> LandingPads:
    """Return where exceptions are caught, by the address before the return address of a call."""
    for number, section in enumerate(file.iter_sections()):
        if section.name == EH_FRAME and section["sh_type"] != "SHT_NOBITS":
            data = Relocations(file, layout.addresses).relocated(number, section) or section.data()
            return ExceptionTables(data, layout.addresses[number], machine.arch.byteorder, image).landing_pads
    return lambda _pc: ()
