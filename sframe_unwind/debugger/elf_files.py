"""Opens the files that a debugger has read for its modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sframe_unwind.arch import Arch
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.elf.build_id import find_build_id
from sframe_unwind.elf.constants import SHT_NOTE
from sframe_unwind.errors import FileError

if TYPE_CHECKING:
    from sframe_unwind.elf import ElfBinary


@contextmanager
def opened_file(file: DebugFile, arch: Arch) -> Iterator[ElfBinary]:
    """Open a file of a debugger for an architecture.

    :raises FileError: the file cannot be read, or is not an ELF file for the architecture.  The name of the file is
        added to this, and to each :class:`FileError` that the ``with`` block raises.
    """
    from sframe_unwind.elf import opened  # not before a file is needed: the plugins must load fast

    with opened(file.path) as binary:
        if (binary.machine, binary.byteorder) != (arch.elf_machine, arch.byteorder):
            found = f"a {binary.byteorder}-endian one for {binary.machine}"
            raise FileError(f"expected a file for {arch.name}, found {found}")
        yield binary


def build_id_of(binary: ElfBinary) -> str:
    """Return the build ID of a file in hexadecimal digits; empty: it has none.

    A separate debug file has the program headers of its program, whose offsets need not be right in it; so the ID is
    taken from the sections.
    """
    notes = (binary.contents(one) for one in binary.sections if one.type == SHT_NOTE)
    return next(filter(None, (find_build_id(data, binary.byteorder) for data in notes)), "")
