"""Removes unwind data from a finished program without moving code: both copies run the same code at the same addresses.

So the plugin's answers on the cut copy must equal the debugger's own answers on the whole copy.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from tests.hanging import HANG

_PT_NULL, _PT_GNU_EH_FRAME = 0, 0x6474E550
_PT_GNU_SFRAME = 0x6474E554
_SHT_PROGBITS = 1
_SH_SIZE, _P_FILESZ, _P_MEMSZ = 0x20, 0x20, 0x28
"""Offsets of sizes of 8 bytes in a section header and in a program header (64-bit ELF)."""
_SECTION_HEADERS = (("=Q", 0x28), ("=H", 0x3C), ("=H", 0x3E))
"""Format and offset of the fields in the ELF header for the section headers: `e_shoff`, `e_shnum`, `e_shstrndx`."""
_SFRAME_HEADER = struct.Struct("<HBBBbbBIIIII")
_SORTED, _PC_RELATIVE = 1, 4
"""Flags.  The second one marks starts that are relative to the field, which they always are in version 3.

Assemblers always write it, and so does GNU ld, which sorts the functions; other linkers leave the flags unchanged.
"""


@dataclass(frozen=True)
class Function:
    """A function of a program, at its address in the file."""

    name: str
    start: int
    size: int


def functions(executable: Path) -> list[Function]:
    """Return the functions with a symbol, by their names in the source: for C++, without the parameters."""
    command = ["nm", "--print-size", "--demangle", "--defined-only", str(executable)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True)
    found = []
    for line in done.stdout.splitlines():
        words = line.split(maxsplit=3)
        if len(words) == 4 and words[2] in "tTwW":
            found.append(Function(words[3].partition("(")[0], int(words[0], 16), int(words[1], 16)))
    return found


def without_cfi(file: Path, starts: Container[int]) -> None:
    """Remove the FDEs of functions at some addresses from `.eh_frame`.

    The bytes of an FDE become padding of the record before it, and the search table becomes shorter.
    """
    with file.open("rb") as stream:
        elf = ELFFile(stream)
        section, index = elf.get_section_by_name(".eh_frame"), elf.get_section_by_name(".eh_frame_hdr")
        records = sorted(elf.get_dwarf_info().EH_CFI_entries(), key=lambda record: record.offset)
        data = bytearray(section.data())
        table = bytearray(index.data()) if index is not None else None  # a static program may have none
    kept, removed = None, set()
    for record in records:
        if not hasattr(record, "header"):  # the terminator
            continue
        (length,) = struct.unpack_from("<I", data, record.offset)
        if not isinstance(record, FDE) or record["initial_location"] not in starts:
            kept = record.offset
            continue
        assert kept is not None
        removed.add(section["sh_addr"] + record.offset)
        data[record.offset : record.offset + 4 + length] = bytes(4 + length)
        (before,) = struct.unpack_from("<I", data, kept)
        struct.pack_into("<I", data, kept, before + 4 + length)
    _write(file, (section["sh_offset"], data))
    if table is None:
        return
    assert table[:4] == b"\x01\x1b\x03\x3b"  # pointers of four bytes; those of the table are relative to it
    (count,) = struct.unpack_from("<I", table, 8)
    entries = [struct.unpack_from("<ii", table, 12 + 8 * number) for number in range(count)]
    left = [entry for entry in entries if index["sh_addr"] + entry[1] not in removed]
    struct.pack_into("<I", table, 8, len(left))
    content = b"".join(struct.pack("<ii", *entry) for entry in left)
    table[12:] = content.ljust(len(table) - 12, b"\0")
    _write(file, (index["sh_offset"], table))


def without_any_cfi(file: Path) -> None:
    """Make `.eh_frame` and its search table plain bytes that no header describes."""
    changes = []
    with file.open("rb") as stream:
        elf = ELFFile(stream)
        for number, section in enumerate(elf.iter_sections()):
            if section.name in (".eh_frame", ".eh_frame_hdr"):
                header = elf["e_shoff"] + number * elf["e_shentsize"]
                changes.append((header, struct.pack("<II", 0, _SHT_PROGBITS)))  # the name at 0 is empty
        for number, segment in enumerate(elf.iter_segments()):
            if segment["p_type"] in (_PT_GNU_EH_FRAME, "PT_GNU_EH_FRAME"):
                changes.append((elf["e_phoff"] + number * elf["e_phentsize"], struct.pack("<I", _PT_NULL)))
    _write(file, *changes)


def without_section_headers(file: Path) -> None:
    """Remove the section headers from the ELF header, as some packers and loaders do."""
    _write(file, *((offset, bytes(struct.calcsize(kind))) for kind, offset in _SECTION_HEADERS))


def extent(file: Path) -> tuple[int, int]:
    """Return the first address that a file loads, and the end of the last one."""
    with file.open("rb") as stream:
        segments = [segment for segment in ELFFile(stream).iter_segments() if segment["p_type"] == "PT_LOAD"]
    ends = (segment["p_vaddr"] + segment["p_memsz"] for segment in segments)
    return min(segment["p_vaddr"] for segment in segments), max(ends)


def covered(file: Path) -> dict[int, int]:
    """Return start address and size in bytes of the functions that `.sframe` describes."""
    table = _SFrame(file)
    return {start: table.size_of(entry) for start, entry in table.entries}


def without_sframe(file: Path, starts: Container[int]) -> None:
    """Remove the functions at some addresses from `.sframe`; their rows stay, but nothing refers to them."""
    table = _SFrame(file)
    table.keep([entry for entry in table.entries if entry[0] not in starts])
    _write(file, (table.offset, table.data))


def compact(file: Path) -> None:
    """Compact the section `.sframe` of a file in place, by `convert --compact`; section and segment become smaller."""
    with file.open("rb") as stream:
        elf = ELFFile(stream)
        section = elf.get_section_by_name(".sframe")
        sizes = [elf["e_shoff"] + elf.get_section_index(".sframe") * elf["e_shentsize"] + _SH_SIZE]
        for number, segment in enumerate(elf.iter_segments()):
            if segment["p_type"] in (_PT_GNU_SFRAME, "PT_GNU_SFRAME"):
                header = elf["e_phoff"] + number * elf["e_phentsize"]
                sizes += [header + _P_FILESZ, header + _P_MEMSZ]
    made = file.with_name("compact")
    command = [sys.executable, "-m", "sframe_unwind", "convert", "--compact", "--from", "sframe", "--as", "section"]
    command += ["--address", hex(section["sh_addr"]), str(file), "--output", str(made)]
    subprocess.run(command, capture_output=True, timeout=HANG, check=True)
    content = made.read_bytes()
    made.unlink()
    assert len(content) <= section["sh_size"]
    size = struct.pack("<Q", len(content))
    changes = [(place, size) for place in sizes]
    _write(file, (section["sh_offset"], content.ljust(section["sh_size"], b"\0")), *changes)


class _SFrame:
    """The list of functions of a `.sframe` section: each entry with the address of its function."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as stream:
            section = ELFFile(stream).get_section_by_name(".sframe")
            self.offset, self._address, self.data = section["sh_offset"], section["sh_addr"], bytearray(section.data())
        header = _SFRAME_HEADER.unpack_from(self.data)
        assert header[0] == 0xDEE2
        version, flags, extra, count = header[1], header[2], header[6], header[7]
        self._start = "<q" if version == 3 else "<i"
        self._size = {1: 17, 2: 20, 3: 16}[version]
        self._relative = version == 3 or bool(flags & _PC_RELATIVE) or not flags & _SORTED
        self._first = _SFRAME_HEADER.size + extra + header[10]
        self.entries = []
        for number in range(count):
            place = self._first + number * self._size
            (start,) = struct.unpack_from(self._start, self.data, place)
            self.entries.append((self._base(place) + start, bytes(self.data[place : place + self._size])))

    def _base(self, place: int) -> int:
        return int(self._address) + (place if self._relative else 0)

    def size_of(self, entry: bytes) -> int:
        """Return the size of an entry's function in bytes."""
        return int(struct.unpack_from("<I", entry, struct.calcsize(self._start))[0])

    def keep(self, entries: Iterable[tuple[int, bytes]]) -> None:
        """Keep only these entries."""
        count, place = 0, self._first
        for start, entry in entries:
            self.data[place : place + self._size] = entry
            struct.pack_into(self._start, self.data, place, start - self._base(place))
            count, place = count + 1, place + self._size
        struct.pack_into("<I", self.data, 8, count)


def _write(file: Path, *changes: tuple[int, bytes | bytearray]) -> None:
    with file.open("r+b") as stream:
        for offset, content in changes:
            stream.seek(offset)
            stream.write(content)
