"""Makes the :class:`CodeImage` of an ELF file."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from operator import gt

from sframe_unwind.address import Range
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.alternatives import alternative_jumps
from sframe_unwind.code.image.code_image import CodeImage, CodeSection, Contents, Plt
from sframe_unwind.code.image.code_relocations import CodeRelocations
from sframe_unwind.code.image.exception_tables import ExceptionTables, LandingPads
from sframe_unwind.code.image.not_returning import is_not_returning
from sframe_unwind.code.image.ranges import Addresses
from sframe_unwind.code.image.section_contents import SectionContents
from sframe_unwind.code.image.static_branches import static_branches
from sframe_unwind.elf import ElfBinary, SectionHeader
from sframe_unwind.elf.cfi import EH_FRAME
from sframe_unwind.elf.constants import (
    ENTRY,
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHF_EXECINSTR,
    SHF_TLS,
    SHF_WRITE,
    SHT_DYNSYM,
    SHT_FINI_ARRAY,
    SHT_INIT_ARRAY,
    SHT_PREINIT_ARRAY,
    SHT_RELA,
    SHT_SYMTAB,
    SYMBOL,
)
from sframe_unwind.elf.relocation import symbol_values
from sframe_unwind.errors import FileError

_BRANCHES = "__jump_table"
_ARRAYS = (SHT_PREINIT_ARRAY, SHT_INIT_ARRAY, SHT_FINI_ARRAY)
_FUNCTIONS, _GLOBAL = (2, 10), (1, 2)
"""``STT_FUNC`` and ``STT_GNU_IFUNC``; ``STB_GLOBAL`` and ``STB_WEAK``."""
_VISIBILITIES, _INTERPOSABLE = range(4), range(1)
"""All, and ``STV_DEFAULT`` alone."""


def image_of(binary: ElfBinary, machine: Machine) -> CodeImage:
    """Read the code, the constants and the relocations of an ELF file."""
    external: dict[int, str] = {}
    sections = []
    relocations = CodeRelocations(binary)
    for section in binary.sections:
        if not section.flags & SHF_ALLOC or section.flags & SHF_TLS or not section.has_contents:
            continue
        data, start = _contents(binary, section), binary.layout.addresses[section.number]
        if binary.is_object:
            data, found = relocations.applied(section.number, data[:])
            external.update(found)
        executable, writable = bool(section.flags & SHF_EXECINSTR), bool(section.flags & SHF_WRITE)
        sections.append(CodeSection(start, data, executable, writable))
    plts = tuple(_plts(binary, machine))
    not_returning = {symbol.address for symbol in binary.symbols if is_not_returning(symbol.name)}
    not_returning.update(address for address, name in _plt_names(binary, plts) if is_not_returning(name))
    entry_point, pointers = binary.entry_point or None, _Pointers(binary)
    image = CodeImage(
        sections=sections,
        byteorder=binary.byteorder,
        not_returning=frozenset(not_returning),
        external=external,
        pointers=pointers,
        plts=plts,
        entry_point=entry_point,
    )
    image.relative = binary.layout.relocatable
    reachable = chain(pointers.found, _global_functions(binary), _in_arrays(binary))
    image.reachable = Addresses(filter(image.is_code, reachable))
    if binary.is_object:
        image.interposable = Addresses(_global_functions(binary, _INTERPOSABLE))
    image.static_branches = {
        **static_branches(image, _branch_tables(binary)),
        **dict(alternative_jumps(binary, image)),
    }
    return image


def _in_arrays(binary: ElfBinary) -> Iterator[int]:
    """Yield the words of the arrays of functions that run when a linked file is loaded and unloaded.

    In a program at fixed addresses, no relocation contains them.
    """
    for section in binary.sections if not binary.is_object else ():
        if section.type in _ARRAYS:
            yield from (word for (word,) in binary.records("Q", binary.contents(section)))


def _branch_tables(binary: ElfBinary) -> Iterator[Range]:
    """Yield the extents of the table of a kernel's static branches.  In a whole kernel it has no section of its own."""
    section = binary.named(_BRANCHES)
    if section is not None:
        start = binary.layout.addresses[section.number]
        yield start, start + section.size
    else:
        symbols = binary.symbols
        yield from zip(symbols.addresses(f"__start_{_BRANCHES}"), symbols.addresses(f"__stop_{_BRANCHES}"))


def _contents(binary: ElfBinary, section: SectionHeader) -> Contents:
    """Return the contents of a section; if possible, they are read when they are needed."""
    if binary.descriptor is None or binary.is_object or section.flags & SHF_COMPRESSED:
        return binary.contents(section)
    size = max(min(section.size, binary.size - section.offset), 0)
    return SectionContents(partial(_read, binary.descriptor, section.offset), size)


def _read(descriptor: int, start: int, offset: int, size: int) -> bytes:
    # Not read(): all processes that work on the file share its position.
    found = os.pread(descriptor, size, start + offset)
    if len(found) != size:
        raise FileError("the file became shorter while it was read")
    return found


def _global_functions(binary: ElfBinary, visibilities: range = _VISIBILITIES) -> Iterator[int]:
    """Yield the addresses of defined global and weak functions.

    :param visibilities: ``st_other`` of their symbols.
    """
    for table in binary.sections:
        if table.type in (SHT_DYNSYM, SHT_SYMTAB):
            layout = binary.layout
            addresses = symbol_values(binary, table.number, layout.addresses if layout.relocatable else ())
            entries = binary.records(SYMBOL, binary.contents(table))
            for (_, info, other, section, _, _), address in zip(entries, addresses):
                if info & 0xF in _FUNCTIONS and info >> 4 in _GLOBAL and section and other & 3 in visibilities:
                    yield address


class _Pointers(Mapping[int, int]):
    """The values that relative relocations of a linked file write, by address."""

    def __init__(self, binary: ElfBinary) -> None:
        self._offsets, self.found = array("Q"), array("Q")
        """The addresses at which the dynamic linker writes a value, ascending, and these values."""
        if binary.is_object:
            return
        kind = binary.arch.elf_code.relative_relocation
        for section in binary.sections:
            if section.type == SHT_RELA:
                for offset, info, addend in binary.records(ENTRY, binary.contents(section)):
                    if info & 0xFFFFFFFF == kind:
                        self._offsets.append(offset)
                        self.found.append(addend & (1 << 64) - 1)
        if any(map(gt, self._offsets, self._offsets[1:])):
            order = sorted(range(len(self._offsets)), key=self._offsets.__getitem__)
            self._offsets = array("Q", map(self._offsets.__getitem__, order))
            self.found = array("Q", map(self.found.__getitem__, order))

    def __getitem__(self, address: int) -> int:
        at = bisect_left(self._offsets, address)
        if at < len(self._offsets) and self._offsets[at] == address:
            return self.found[at]
        raise KeyError(address)

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)


def _plts(binary: ElfBinary, machine: Machine) -> Iterator[Plt]:
    for section in binary.sections:
        if not section.name.startswith((".plt", ".iplt")) or not section.flags & SHF_EXECINSTR:
            continue
        header = binary.arch.elf_code.plt_header_size if section.name == ".plt" else 0
        entry_size = section.entry_size
        if entry_size not in machine.plt_entry_sizes or section.name != ".plt":
            relocations = _plt_relocations(binary)
            count = relocations.size // 24 if relocations is not None else 0
            fitting = [size for size in machine.plt_entry_sizes if header + size * count == section.size]
            entry_size = fitting[0] if fitting else entry_size or machine.plt_entry_sizes[0]
        if section.size and entry_size >= 8:
            yield Plt(section.address, section.end, section.address + header, entry_size)


def _plt_relocations(binary: ElfBinary) -> SectionHeader | None:
    named = (section for section in binary.sections if section.name == ".rela.plt")
    return next((section for section in named if section.type == SHT_RELA), None)


def _plt_names(binary: ElfBinary, plts: tuple[Plt, ...]) -> Iterator[tuple[int, str]]:
    """Yield address and name of each entry of a PLT; entries are in the order of their relocations."""
    section = _plt_relocations(binary)
    if section is None or not plts:
        return
    table = binary.section(section.link)
    if table.type not in (SHT_DYNSYM, SHT_SYMTAB):
        return
    strings = binary.strings(table)
    names = []
    for entry in binary.records(SYMBOL, binary.contents(table)):
        end = strings.find(b"\0", entry[0])
        names.append(strings[entry[0] : end].decode("utf-8", "backslashreplace"))
    for number, (_, info, _) in enumerate(binary.records(ENTRY, binary.contents(section))):
        symbol = info >> 32
        if symbol < len(names):
            for plt in plts:
                address = plt.first + number * plt.entry_size
                if address + plt.entry_size <= plt.end:
                    yield address, names[symbol]


def exception_tables(binary: ElfBinary, image: CodeImage) -> LandingPads:
    """Return the landing pads of a file; see :data:`LandingPads`."""
    for section in binary.sections:
        if section.name == EH_FRAME and section.has_contents:
            address = binary.layout.addresses[section.number]
            return ExceptionTables(binary.relocated(section), address, binary.byteorder, image).landing_pads
    return lambda _pc: ()
