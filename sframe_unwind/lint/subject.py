"""The input of ``lint``: one SFrame section, and the properties of the file around it that consumers know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sframe_unwind.address import Range, find_range
from sframe_unwind.arch import Arch
from sframe_unwind.elf import SECTION_NAME, ElfBinary
from sframe_unwind.elf.symbols import Symbol
from sframe_unwind.named_tuple import NamedTuple


class Field(NamedTuple):
    """A relocation of the section."""

    offset: int
    """Place in bytes from the start of the section."""
    pc_relative: bool | None
    """``None``: the type of the relocation is unknown."""
    in_group: bool
    """Its function is in a section group that does not contain the SFrame section."""
    target: str
    """Name of the section with the function; empty: there is none."""


class Subject(NamedTuple):
    """An SFrame section with the properties of its file that consumers know."""

    data: bytes
    """The contents; in an object file, with relocations applied."""
    address: int
    text: tuple[Range, ...]
    """The ranges where code can be executed: the executable segments of a linked file, sorted."""
    code: tuple[Range, ...]
    """The sections with code, sorted."""
    arch: Arch
    """Architecture of the file."""
    is_object: bool
    is_movable: bool = False
    """The file is linked, and can be loaded at any address."""
    binary: ElfBinary | None = None
    """The file; ``None``: the section is not in one."""
    is_loaded: bool = True
    """The section lies within one loaded segment."""
    segment_size: int | None = None
    """Length of the segment PT_GNU_SFRAME in bytes; ``None``: there is none."""
    is_read: bool = True
    """Consumers find the section: of a linked file with several, the one with the usual name."""
    has_segments: bool = False
    """The file has program headers that could name the section."""
    fields: tuple[Field, ...] = ()
    name: str = SECTION_NAME
    init_code: tuple[Range, ...] = ()
    """The code of an object file that a kernel frees after it has initialised the module, sorted."""

    @property
    def symbols(self) -> Iterable[Symbol]:
        """The symbols of the file, sorted by address."""
        return self.binary.symbols if self.binary is not None else ()

    def text_end(self, address: int) -> int | None:
        """Return the end address of the executable range that contains an address; ``None``: there is none."""
        return _end(self.text, address)

    def code_end(self, address: int) -> int | None:
        """Return the end address of the section of code that contains an address; ``None``: there is none."""
        return _end(self.code, address)

    def is_kept(self, address: int) -> bool:
        """Return whether code stays in memory as long as the file is loaded."""
        return _end(self.init_code, address) is None

    def name_of(self, address: int) -> str:
        """Return an address in words: itself, in an object file section and offset, and the symbol."""
        if self.binary is None:
            return f"{address:#x}"
        return self.binary.layout.spot(address).with_name(self.binary.function_name(address))


def _end(ranges: Sequence[Range], address: int) -> int | None:
    found = find_range(ranges, address)
    return None if found is None else found[1]
