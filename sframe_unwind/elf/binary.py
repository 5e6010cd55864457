"""One ELF file with all its data, which is read when it is first needed, and kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

from sframe_unwind.address import KERNEL_HALF
from sframe_unwind.arch import Arch, of_elf
from sframe_unwind.elf.constants import ET_CORE, PT_GNU_SFRAME, PT_LOAD, PT_NOTE, SHT_GNU_SFRAME, SHT_SYMTAB
from sframe_unwind.elf.contents import Reader
from sframe_unwind.elf.reader import FileReader, PathLike, open_file
from sframe_unwind.elf.records import ProgramHeader, SectionHeader
from sframe_unwind.elf.rewritten import rewriter
from sframe_unwind.errors import FileError, FormatError, NoSFrameError
from sframe_unwind.memory import Data, LazyBytes
from sframe_unwind.sframe import header
from sframe_unwind.sframe.section import Section

if TYPE_CHECKING:  # most commands, and the plugins, need few of these
    from sframe_unwind.elf.cfi import FileCfi
    from sframe_unwind.elf.padding import Padding
    from sframe_unwind.elf.relocation import Relocations
    from sframe_unwind.elf.section_addresses import Layout
    from sframe_unwind.elf.symbols import Symbols
    from sframe_unwind.orc import OrcTable

SECTION_NAME = ".sframe"

_CORE = "a core file, expected a program or library; `sframe-unwind backtrace --core` shows its stacks"

_CHUNK = 4096
"""Number of bytes that one read of a file fetches: one page, since the kernel reads whole pages anyway."""
_MAX_LAYERS = 8
"""Maximum number of plausible descriptions of one byte of code: linkers merge equal functions."""
_MAX_NOTES = 1 << 20
"""Maximum number of bytes of a segment of notes in which the build ID is searched."""


class ElfBinary(Reader):
    """A 64-bit ELF file, linked or not.

    The sections of an object file have no addresses; :attr:`layout` gives each a distinct one, which the addresses of
    :attr:`symbols`, :attr:`sframe` and :attr:`cfi` use.

    Each property raises :class:`FileError` if the part of the file that it needs is malformed.

    :param stream: the file, which stays open as long as this object is used.
    :param name: name of the file.
    :param as_written: the sections of an object file have the addresses in their headers, as in the images of run-time
        compilers.
    :raises FileError: it is not a 64-bit ELF file.
    """

    def __init__(self, stream: BinaryIO, name: str, as_written: bool = False) -> None:
        super().__init__(stream)
        self.name = name
        self._as_written = as_written

    @cached_property
    def arch(self) -> Arch:
        """The architecture.

        :raises FileError: SFrame has no ABI for the machine of the file.
        """
        arch = of_elf(self.machine, self.byteorder)
        if arch is not None:
            return arch
        raise FileError(f"a {self.byteorder}-endian file for {self.machine}, for which SFrame has no ABI")

    @cached_property
    def layout(self) -> Layout:
        """The addresses of the sections."""
        from sframe_unwind.elf.section_addresses import Layout

        return Layout(self, self._as_written)

    @cached_property
    def relocations(self) -> Relocations:
        """The relocations of an object file."""
        return self.relocations_at(self.layout.addresses)

    def relocations_at(self, addresses: Sequence[int]) -> Relocations:
        """Return the relocations for other addresses of the sections, such as those of a process.

        :param addresses: by section number; empty: all sections are at address 0.
        """
        from sframe_unwind.elf.relocation import Relocations

        return Relocations(self, addresses)

    def relocated(self, section: SectionHeader) -> bytes:
        """Return the contents of a section; in an object file with its relocations applied.

        :raises FileError: a relocation is of an unknown type, or outside the section.
        """
        return self.relocations.contents(section)

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols of ``.symtab``; if there is none, those of ``.dynsym`` and of the file in ``.gnu_debugdata``."""
        from sframe_unwind.elf.symbols import Symbols, symbols_of

        own = symbols_of(self, self.layout)
        if self.has_symbol_table:
            return own
        from sframe_unwind.elf.mini_debug_info import embedded_file
        from sframe_unwind.elf.section_addresses import Layout

        with suppress(FileError):  # names only help people: damaged ones must not prevent the use of rules
            if content := embedded_file(self):
                embedded = Reader(BytesIO(content))
                return Symbols([*own, *symbols_of(embedded, Layout(embedded))])
        return own

    @property
    def has_symbol_table(self) -> bool:
        """Whether there is a ``.symtab`` with contents: the file is not stripped."""
        return any(section.type == SHT_SYMTAB and section.has_contents for section in self.sections)

    def function_name(self, address: int) -> str:
        """Return the name of the function at an address, and the offset from its start; empty: no symbol covers it."""
        from sframe_unwind.elf.symbols import symbol_text

        found = self.symbols.find(address)
        if found is None:
            return ""
        symbol, offset = found
        # A symbol without a size reaches to the next one, but not into another section.
        if offset and self.layout.spot(symbol.address).section != self.layout.spot(address).section:
            return ""
        return symbol_text(symbol, offset)

    def check_sections(self) -> None:
        """Check that the file can have code and tables, and has section headers.

        :raises FileError: it is a core file, or has no section headers, and so nothing tells where its code is.
        """
        if self._is_core:
            raise FileError(_CORE)
        if not self.sections:
            raise FileError("no section headers, which tell where code and DWARF CFI are")

    def check_extent(self, what: str, described: int) -> None:
        """Check that not thousands of functions overlap, because each pair would have to be compared.

        :param what: name of the table with the functions.
        :param described: total size of the functions, in bytes.
        :raises FormatError: thousands overlap.
        """
        code = sum(end - start for start, end in self.layout.code)
        if described > _MAX_LAYERS * code:
            message = f"{what} describes functions of {described:#x} bytes in all, but there are {code:#x} of code"
            raise FormatError(message)

    @cached_property
    def stubs(self) -> Symbols:
        """The stubs of the procedure linkage table."""
        from sframe_unwind.elf.plt import stubs
        from sframe_unwind.elf.symbols import Symbols

        return Symbols(stubs(self))

    @cached_property
    def padding(self) -> Padding:
        """The padding between functions."""
        from sframe_unwind.elf.padding import Padding

        return Padding(self, self.layout.addresses, self.arch.padding)

    @cached_property
    def sframe(self) -> list[Section]:
        """The SFrame sections.  Only object files with section groups have more than one.

        :raises NoSFrameError: there is none.
        :raises FormatError: a section is malformed, or its ABI does not match the machine of the file.
        """
        return self.read_sframe(self.relocations)

    @cached_property
    def cfi(self) -> FileCfi:
        """The DWARF CFI.

        :raises FormatError: a section is not a sequence of CFI records.
        """
        from sframe_unwind.elf.cfi import FileCfi

        return FileCfi(self, self.arch, self.layout, self.relocations)

    @cached_property
    def orc(self) -> OrcTable | None:
        """The ORC of a kernel or of its module; ``None``: there is none.

        :raises FormatError: it is malformed.
        """
        from sframe_unwind.elf.orc import orc_of

        return orc_of(self, self.layout, self.relocations)

    @cached_property
    def build_id(self) -> str:
        """The build ID in hexadecimal digits; empty: there is none."""
        from sframe_unwind.elf.build_id import find_build_id

        notes = (segment for segment in self.segments if segment.type == PT_NOTE)
        parts = (self.read(segment.offset, min(segment.file_size, _MAX_NOTES)) for segment in notes)
        return next(filter(None, (find_build_id(data, self.byteorder) for data in parts)), "")

    @property
    def rewriter(self) -> str:
        """The name of the tool that rewrote the code after linking and left SFrame as it was; empty: none did."""
        return rewriter({section.name: section.address for section in self.sections})

    @property
    def is_kernel(self) -> bool:
        """Whether it is linked at the addresses of a kernel: the upper half of the address space.

        A kernel that can move itself is ``ET_DYN``, but its addresses do not count from 0.
        """
        return any(segment.type == PT_LOAD and segment.address >= KERNEL_HALF for segment in self.segments)

    @property
    def is_debug_file(self) -> bool:
        """Whether it is a separate debug file, with the headers of its program or library, but not the code."""
        return bool(self.sections) and not self.layout.code

    @property
    def sframe_sections(self) -> list[SectionHeader]:
        """The headers of all SFrame sections with contents.  Name or type identifies them."""
        return [
            section
            for section in self.sections
            if (section.name == SECTION_NAME or section.type == SHT_GNU_SFRAME) and section.has_contents
        ]

    @property
    def sframe_segments(self) -> list[ProgramHeader]:
        """The segments PT_GNU_SFRAME with contents: objcopy leaves an empty one when it removes the section."""
        return [segment for segment in self.segments if segment.type == PT_GNU_SFRAME and segment.file_size]

    @property
    def has_sframe(self) -> bool:
        """Whether there is SFrame, in a section or in a segment of a file without section headers."""
        return bool(self.sframe_sections or self.sframe_segments)

    def without_contents(self, *names: str) -> str:
        """Return why the contents of sections cannot be read although the file has their headers, and where they are.

        :param names: names of sections.
        :return: the message; empty: the file has no such section, or the contents of each.
        """
        found = [section.name for section in self.sections if section.name in names and not section.has_contents]
        if not found:
            return ""
        message = f"{' and '.join(found)} {'has' if len(found) == 1 else 'have'} no contents in this "
        if not self.is_debug_file:
            return message + "file (SHT_NOBITS)"
        build_id = f" (build ID {self.build_id})" if self.build_id else ""
        return message + f"separate debug file; its program or library{build_id} has them"

    def no_sframe(self) -> NoSFrameError:
        """Return the error that the file has no SFrame."""
        found = _CORE if self._is_core else self.without_contents(SECTION_NAME)
        return NoSFrameError(found or f"no {SECTION_NAME} section")

    @property
    def _is_core(self) -> bool:
        return self.header.type == ET_CORE

    def named(self, name: str) -> SectionHeader | None:
        """Return the last section with a name; ``None``: there is none."""
        return next((section for section in reversed(self.sections) if section.name == name), None)

    def size_of(self, name: str) -> int:
        """Return the size of the sections with a name in the file, in bytes."""
        return sum(section.size for section in self.sections if section.name == name and section.has_contents)

    def read_sframe(self, relocations: Relocations, path: PathLike | None = None) -> list[Section]:
        """Return the SFrame sections, decoded anew.

        :param relocations: relocations of an object file, which determine the addresses of its sections.
        :param path: read the tables from this file on demand; ``None``: read the whole section now.
        :raises NoSFrameError: there is none.
        :raises FormatError: a section is malformed, or its ABI does not match the machine of the file.
        """
        found = self.sframe_sections
        sections = [
            Section(
                self._sframe_data(relocations, section, path),
                relocations.address(section),
                relocated=self.is_object,
            )
            for section in found
        ] or [
            Section(self._part(path, segment.offset, segment.file_size), segment.address, size_known=False)
            for segment in self.sframe_segments
        ]
        if not sections:
            raise self.no_sframe()
        for decoded in sections:
            self._check_machine(decoded)
        for section, decoded in zip(found, sections):
            relocations.check_targets(section.number, decoded)
        return sections

    def _sframe_data(self, relocations: Relocations, section: SectionHeader, path: PathLike | None) -> Data:
        if relocations.has(section):
            return relocations.contents(section)
        return self._part(path, section.offset, section.size)

    def _part(self, path: PathLike | None, offset: int, size: int) -> Data:
        if offset + size > self.size:
            raise FileError(f"truncated: SFrame data ends at {offset + size:#x}, the file at {self.size:#x}")
        if path is None:
            return self.read(offset, size)
        reader = FileReader(path)

        def fetch(start: int, length: int) -> bytes:
            piece = reader.read(offset + start, length)
            if len(piece) != length:
                raise FileError(f"{path}: file became shorter while it was read")
            return piece

        return LazyBytes(fetch, size, _CHUNK)

    def _check_machine(self, section: Section) -> None:
        for table in section.tables:
            arch = table.arch
            if arch.elf_machine != self.machine or arch.byteorder != self.byteorder:
                file = f"a {self.byteorder}-endian file for {self.machine}"
                raise FormatError(
                    f"SFrame ABI {table.header.abi.value} ({arch.name}) in {file}", table.offset + header.ABI_OFFSET
                )


_OF_WRITING = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
"""Errors that only writing has: they are about the output of the block, not about the file."""


@contextmanager
def opened(path: PathLike) -> Iterator[ElfBinary]:
    """Open an ELF file.

    :raises FileError: the file cannot be read, or is not a 64-bit ELF file.  The name of the file is added to this and
        to each :class:`FileError` and :class:`NoSFrameError` that the ``with`` block raises.
    """
    try:
        with open_file(path) as stream, parsed(stream, str(path)) as binary:
            yield binary
    except BrokenPipeError:
        raise  # nobody reads the output any more, which the block writes
    except OSError as error:
        if error.errno in _OF_WRITING:
            raise
        raise FileError(f"{path}: {error.strerror or error}") from error


@contextmanager
def parsed(stream: BinaryIO, name: str, as_written: bool = False) -> Iterator[ElfBinary]:
    """Read an ELF file from a stream; see :func:`opened`, and :class:`ElfBinary` for the arguments."""
    try:
        yield ElfBinary(stream, name, as_written)
    except (FileError, NoSFrameError) as error:
        raise type(error)(f"{name}: {error}") from error


def load(file: PathLike | bytes, lazy: bool = True) -> list[Section]:
    """Open the SFrame sections of an ELF file.  Only object files with section groups have more than one.

    The sections of an object file are all at address 0, as readelf assumes.

    :param file: the path of the file, or its contents.
    :param lazy: read the tables of a file on demand; ``False``: read the whole section now, for uses that need all.
    :raises FileError: the file cannot be read, is not a 64-bit ELF file, or is truncated.
    :raises NoSFrameError: the file has no SFrame section.
    :raises FormatError: a section is malformed, or its ABI does not match the machine of the file.
    """
    if isinstance(file, bytes):
        with parsed(BytesIO(file), "<bytes>") as binary:
            return binary.read_sframe(binary.relocations_at(()))
    with opened(file) as binary:
        return binary.read_sframe(binary.relocations_at(()), file if lazy else None)
