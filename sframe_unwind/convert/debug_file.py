"""Makes separate debug files: the sections of a program without their contents, call frame information, and symbols.

``objcopy --only-keep-debug`` makes such files.  A debugger takes the load addresses of the sections from the program,
whose sections have the same names and addresses.
"""

from __future__ import annotations

from collections.abc import Sequence

from sframe_unwind.address import ByteOrder
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.assembly import Part, assembled, plain_header
from sframe_unwind.elf.constants import SHT_NOBITS, SHT_NOTE, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB
from sframe_unwind.elf.records import SectionHeader, Symbol, encoded
from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple

_STB_LOCAL, _STT_FUNC = 0, 2


class DebugSymbol(NamedTuple):
    """A symbol of the debug file."""

    name: str
    address: int
    size: int
    """In bytes."""
    info: int = _STB_LOCAL << 4 | _STT_FUNC
    """Binding and type."""


def debug_file(program: ElfBinary, name: str, data: bytes, symbols: Sequence[DebugSymbol]) -> bytes:
    """Return the debug file of a program, with one section that is not loaded.

    :param program: the linked file.
    :param symbols: the symbols; none: the file gets no symbol table.
    :raises FileError: the file is truncated, or has no section headers.
    """
    byteorder = program.byteorder
    if program.names_number >= len(program.sections):
        raise FileError("no section headers, by which a debugger finds where the program is loaded")
    parts = [Part(b"", SectionHeader(), b"")]
    parts += (_kept(program, section) for section in program.sections[1:] if section.is_loaded)
    parts.append(Part(name.encode(), plain_header(SHT_PROGBITS, data), data))
    if symbols:
        parts += _symbol_table(symbols, parts, byteorder)
    return assembled(program.header, parts)


def _kept(program: ElfBinary, section: SectionHeader) -> Part:
    """Return a loaded section, without its contents unless it has notes: one of them is the build ID."""
    name = program.section_names[section.name_offset :].partition(b"\0")[0]
    is_note = section.type == SHT_NOTE
    data = program.read(section.offset, section.size) if is_note else b""
    return Part(name, section._replace(type=SHT_NOTE if is_note else SHT_NOBITS, link=0, info=0), data)


def _symbol_table(symbols: Sequence[DebugSymbol], parts: Sequence[Part], byteorder: ByteOrder) -> list[Part]:
    """Return a symbol table and its strings."""
    table, strings = [Symbol()], [b""]
    ordered = sorted(symbols, key=lambda symbol: symbol.info >> 4 != _STB_LOCAL)  # local ones come first
    at = 1
    for name, address, size, info in ordered:
        number = next((n for n, (_, header, _) in enumerate(parts) if 0 <= address - header.address < header.size), 0)
        table.append(Symbol(name=at, info=info, shndx=number, value=address, size=size))
        strings.append(name.encode("utf-8", "surrogateescape"))
        at += len(strings[-1]) + 1
    data, names = encoded(table, byteorder), b"\0".join(strings) + b"\0"
    locals_ = 1 + sum(symbol.info >> 4 == _STB_LOCAL for symbol in symbols)
    entry_size = len(data) // len(table)
    header = plain_header(SHT_SYMTAB, data)._replace(link=len(parts) + 1, info=locals_, entry_size=entry_size)
    return [Part(b".symtab", header, data), Part(b".strtab", plain_header(SHT_STRTAB, names), names)]
