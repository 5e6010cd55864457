"""The ``.debug_frame`` sections of the files that a debugger has read for a module.

This CFI is not part of the image in memory.  Kernels, Go programs and code compiled without asynchronous unwind tables
have no other CFI; a debugger reads it from the file on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiSection, PlacedCfi, SectionData
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.file_check import may_have_section
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.image.elf_sections import ElfSections, FileSection

Sections = Mapping[str, tuple[int, int]]
"""Start and end address (exclusive) of a module's sections in memory, by name."""

_NAMES = (".debug_frame", ".zdebug_frame")
_TEXT = ".text"


def placed_by_sections(files: Iterable[DebugFile], arch: Arch, sections: Sections) -> Sequence[PlacedCfi]:
    """Return the ``.debug_frame`` sections of files that fit a module; files that cannot be used are left out.

    :param files: the files, in the order in which their CFI takes precedence.
    """
    return tuple(_placed(files, arch, sections, lambda found: _bias(found, sections)))


def placed_by_bias(files: Iterable[DebugFile], arch: Arch, bias: int) -> Sequence[PlacedCfi]:
    """Return the same for a module of which only the load bias is known."""
    return tuple(_placed(files, arch, {}, lambda _: bias))


def is_beyond_this_python(files: Iterable[DebugFile], arch: Arch) -> bool:
    """Return whether a file has a ``.debug_frame`` that is compressed in a way that only the debugger may know."""
    return any(_is_unreadable(file, arch) for file in files)


def _is_unreadable(file: DebugFile, arch: Arch) -> bool:
    with suppress(SFrameError, OSError), Path(file.path).open("rb") as stream:
        elf = ElfSections(stream, arch)
        at = elf.find(*_NAMES)
        try:
            return at is not None and not elf.contents(at)
        except FormatError:
            return True
    return False


def _placed(
    files: Iterable[DebugFile],
    arch: Arch,
    sections: Sections,
    bias_of: Callable[[Sequence[FileSection]], int],
) -> Iterator[PlacedCfi]:
    for file in files:
        try:
            found = _opened(file, arch, sections, bias_of)
            if found is not None:
                found.section.extents()  # malformed records are detected here, once
                yield found
        except (SFrameError, OSError):
            continue  # the file is missing, or not the one that the debugger has read: its CFI is not known


def _opened(
    file: DebugFile,
    arch: Arch,
    sections: Sections,
    bias_of: Callable[[Sequence[FileSection]], int],
) -> PlacedCfi | None:
    if not may_have_section(file.path, *map(str.encode, _NAMES)):  # as in most files
        return None
    with Path(file.path).open("rb") as stream:
        elf = ElfSections(stream, arch)
        at = elf.find(*_NAMES)
        if at is None:
            return None
        if file.build_id and elf.build_id() != file.build_id:
            raise FormatError("the file was replaced after the debugger had read it")
        if elf.is_relocatable:
            starts = {name: start for name, (start, _) in sections.items()}
            data, bias = elf.relocated(at, starts), 0
        else:
            data, bias = elf.contents(at), bias_of(elf.all)
    return PlacedCfi(CfiSection(SectionData(0, data), None, arch, debug_frame=True), bias)


def _bias(found: Sequence[FileSection], sections: Sections) -> int:
    """Return the address in memory that corresponds to the address 0 of the file, computed by ``.text`` as in GDB.

    :raises FormatError: the file has other sections than the module.
    """
    pairs = [(one, sections[one.name]) for one in found if one.is_allocated and one.name in sections]
    if not pairs or any(one.size != end - start for one, (start, end) in pairs):
        raise FormatError("the file has other sections than the module")
    one, (start, _) = next((pair for pair in pairs if pair[0].name == _TEXT), pairs[0])
    return start - one.address
