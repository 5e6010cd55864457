"""Reads core files: the registers of each thread, the auxiliary vector, the mapped files, and the saved memory.

It supports the core files of the kernel, of GDB's ``generate-core-file`` and of QEMU, which have different notes in
different orders.
"""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator, Sequence
from functools import partial

from sframe_unwind.address import WORD_SIZE, RangeMap
from sframe_unwind.arch import Arch, of_elf
from sframe_unwind.elf import ElfBinary, PathLike, ProgramHeader, opened
from sframe_unwind.elf.constants import PF_W, PF_X, PT_LOAD, PT_NOTE
from sframe_unwind.elf.reader import FileReader
from sframe_unwind.errors import FileError
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.process.base import FileMapping, Thread
from sframe_unwind.process.compressed_file import plain_file
from sframe_unwind.process.memory import Memory
from sframe_unwind.process.registers import float_registers, general_registers

# Offsets in struct elf_prstatus, which are the same in all 64-bit ABIs.
_SIGNAL, _ID, _REGISTERS = 12, 32, 112
_NAME = slice(40, 56)
"""``pr_fname`` in ``struct elf_prpsinfo``."""
_NT_PRSTATUS, _NT_FPREGSET, _NT_PRPSINFO, _NT_AUXV, _NT_FILE = 1, 2, 3, 6, 0x46494C45
_LONGEST = {_NT_PRSTATUS: 1 << 10, _NT_FPREGSET: 1 << 10, _NT_PRPSINFO: 1 << 10, _NT_AUXV: 1 << 16, _NT_FILE: 1 << 26}
"""The notes that are read, and the maximum number of bytes of each: three times the largest that the kernel writes."""
_MAX_NOTES = 1 << 19
"""Maximum number of notes of one segment; the kernel writes some six for each thread."""


class Core(NamedTuple):
    """The contents of a core file."""

    path: str
    arch: Arch
    threads: tuple[Thread, ...]
    auxv: dict[int, int]
    """The auxiliary vector."""
    mappings: tuple[FileMapping, ...]
    """The mapped files; empty: the core file has no note about them."""
    memory: Memory
    """The saved memory."""
    executable: RangeMap[None]
    """The executable memory, whether or not it was saved."""
    truncated: str
    """Description of the missing part of the file; empty: it is complete."""


def open_core(path: PathLike) -> Core:
    """Open a core file, which may be compressed (gzip, Zstandard, xz, bzip2), and read its notes.

    :raises FileError: the file is not a core file, SFrame has no ABI for its machine, or it has no registers.
    """
    with plain_file(path) as plain:
        return _open(plain)._replace(path=str(path))


def _open(path: PathLike) -> Core:
    with opened(path) as binary:
        sections, size = binary.header.shoff, binary.size
        if sections > size:
            raise FileError(f"truncated after {size:,} bytes, its section headers would be at {sections:,}")
        if binary.type_name != "ET_CORE":
            raise FileError(f"not a core file: its type is {binary.type_name}")
        arch = of_elf(binary.machine, binary.byteorder)
        if arch is None:
            raise FileError(f"a core file of {binary.machine}, for which SFrame has no ABI")
        segments = binary.segments
        parts = [segment for segment in segments if segment.type == PT_NOTE]
        if cut := _cut(parts, size):
            raise FileError(f"{cut} of notes")
        notes = [note for part in parts for note in _notes(binary, part)]
        threads = _threads(arch, notes)
        if not threads:
            raise FileError(f"no registers of any thread, the file is {_cut(segments, size) or 'not whole'}")
        return Core(
            path=str(path),
            arch=arch,
            threads=threads,
            auxv=_auxv(arch, notes),
            mappings=_mappings(arch, notes),
            memory=_memory(path, segments, size),
            executable=RangeMap(_executable(segments)),
            truncated=_cut(segments, size),
        )


def _cut(segments: Sequence[ProgramHeader], size: int) -> str:
    """Return a description of the missing end of a file; empty: the file is complete."""
    end = max((segment.offset + segment.file_size for segment in segments), default=0)
    return f"truncated after {size:,} of {end:,} bytes" if end > size else ""


class _Note(NamedTuple):
    kind: int
    data: bytes


def _notes(binary: ElfBinary, part: ProgramHeader) -> Iterator[_Note]:
    """Yield the notes of a segment (System V ABI, chapter 5, "Note Section"; names and contents are padded to 4).

    :raises FileError: there are too many.
    """
    header = struct.Struct(STRUCT_MARKS[binary.byteorder] + "III")
    at, end = part.offset, part.offset + part.file_size
    for _ in range(_MAX_NOTES):
        if at + header.size > end:
            return
        name_size, size, kind = header.unpack(binary.read(at, header.size))
        start = at + header.size + name_size + -name_size % 4
        if kind in _LONGEST:
            yield _Note(kind, binary.read(start, max(min(size, _LONGEST[kind], end - start), 0)))
        at = start + size + -size % 4
    raise FileError(f"more than {_MAX_NOTES:,} notes in a segment")


def _threads(arch: Arch, notes: list[_Note]) -> tuple[Thread, ...]:
    mark = STRUCT_MARKS[arch.byteorder]
    name = next((_text(note.data[_NAME]) for note in notes if note.kind == _NT_PRPSINFO), "")
    found: list[tuple[int, int, dict[int, int]]] = []
    for kind, data in notes:
        if kind == _NT_PRSTATUS and len(data) > _REGISTERS:
            (number,) = struct.unpack_from(mark + "H", data, _SIGNAL)
            (thread,) = struct.unpack_from(mark + "I", data, _ID)
            found.append((thread, number, general_registers(arch, data[_REGISTERS:])))
        elif kind == _NT_FPREGSET and found:  # this note follows the NT_PRSTATUS of the same thread
            found[-1][2].update(float_registers(arch, data))
    # The first thread received the signal.  The notes of the other threads repeat it.
    return tuple(
        Thread(thread, name, "" if level else _signal_name(number), registers)
        for level, (thread, number, registers) in enumerate(found)
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}" if number else ""


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _auxv(arch: Arch, notes: list[_Note]) -> dict[int, int]:
    pair = struct.Struct(STRUCT_MARKS[arch.byteorder] + "QQ")
    data = next((note.data for note in notes if note.kind == _NT_AUXV), b"")
    return dict(pair.iter_unpack(data[: len(data) // pair.size * pair.size]))


def _mappings(arch: Arch, notes: list[_Note]) -> tuple[FileMapping, ...]:
    """Return the mapped files from the note ``NT_FILE``: their number, a page size, their ranges, their names."""
    data = next((note.data for note in notes if note.kind == _NT_FILE), b"")
    mark = STRUCT_MARKS[arch.byteorder]
    if len(data) < 2 * WORD_SIZE:
        return ()
    count, page_size = struct.unpack_from(mark + "QQ", data)
    entry = struct.Struct(mark + "QQQ")
    end = 2 * WORD_SIZE + count * entry.size
    whole = min(end, len(data)) - 2 * WORD_SIZE
    entries = data[2 * WORD_SIZE :][: whole // entry.size * entry.size]
    names = data[end:].split(b"\0", count)
    return tuple(
        FileMapping(start, stop, page * page_size, os.fsdecode(name))
        for (start, stop, page), name in zip(entry.iter_unpack(entries), names)
    )


def _executable(segments: Sequence[ProgramHeader]) -> Iterator[tuple[int, int, None]]:
    for segment in segments:
        if segment.type == PT_LOAD and segment.flags & PF_X:
            yield segment.address, segment.address + segment.memory_size, None


def _memory(path: PathLike, segments: Sequence[ProgramHeader], size: int) -> Memory:
    """Return the memory that a core file of ``size`` bytes saved.

    If the file is truncated, read-only memory can still come from the mapped files, but writable memory is lost.
    """
    reader = FileReader(path)

    def read(offset: int, start: int, length: int) -> bytes:
        return reader.read(offset + start, length)

    memory = Memory()
    for segment in segments:
        if segment.type == PT_LOAD:
            start, offset, length = segment.address, segment.offset, segment.file_size
            if not segment.flags & PF_W:
                length = min(length, size - offset)
            memory.add_saved(start, start + length, partial(read, offset))
    return memory
