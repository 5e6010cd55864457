"""The ``.debug_frame`` sections of the files that a debugger has read for a module.

This CFI is not part of the image in memory.  Kernels, Go programs and code compiled without asynchronous unwind tables
have no other CFI; a debugger reads it from the file on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Callable

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiSection, PlacedCfi, SectionData
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.elf_files import build_id_of, opened_file
from sframe_unwind.debugger.file_check import may_have_section
from sframe_unwind.elf.cfi import DEBUG_FRAMES
from sframe_unwind.elf.records import SectionHeader
from sframe_unwind.errors import DecompressionError, FormatError, SFrameError

if TYPE_CHECKING:
    from sframe_unwind.elf import ElfBinary

Sections = Mapping[str, tuple[int, int]]
"""Start and end address (exclusive) of a module's sections in memory, by name."""

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
    return bool(why_undecompressed(files, arch))


def why_undecompressed(files: Iterable[DebugFile], arch: Arch) -> str:
    """Return why a ``.debug_frame`` of the files cannot be decompressed here; empty: there is no such section.

    :return: one line with the file, the section, and what is damaged or missing.
    """
    for file in files:
        with suppress(SFrameError):
            try:
                with opened_file(file, arch) as binary:
                    section = _section(binary)
                    if section is not None:
                        binary.contents(section)
            except DecompressionError as error:
                return str(error)
    return ""


def _placed(
    files: Iterable[DebugFile],
    arch: Arch,
    sections: Sections,
    bias_of: Callable[[Sequence[SectionHeader]], int],
) -> Iterator[PlacedCfi]:
    for file in files:
        try:
            found = _opened(file, arch, sections, bias_of)
            if found is not None:
                found.section.extents()  # malformed records are detected here, once
                yield found
        except SFrameError:
            continue  # the file is missing, or not the one that the debugger has read: its CFI is not known


def _opened(
    file: DebugFile,
    arch: Arch,
    sections: Sections,
    bias_of: Callable[[Sequence[SectionHeader]], int],
) -> PlacedCfi | None:
    if not may_have_section(file.path, *map(str.encode, DEBUG_FRAMES)):  # as in most files
        return None
    with opened_file(file, arch) as binary:
        section = _section(binary)
        if section is None:
            return None
        if file.build_id and build_id_of(binary) != file.build_id:
            raise FormatError("the file was replaced after the debugger had read it")
        addresses = [sections.get(one.name, (0, 0))[0] for one in binary.sections] if binary.is_object else []
        data = binary.relocations_at(addresses).contents(section)
        bias = 0 if binary.is_object else bias_of(binary.sections)
    return PlacedCfi(CfiSection(SectionData(0, data), None, arch, debug_frame=True), bias)


def _section(binary: ElfBinary) -> SectionHeader | None:
    """Return the first ``.debug_frame`` with contents; ``None``: there is none."""
    return next((one for one in binary.sections if one.name in DEBUG_FRAMES and one.has_contents), None)


def _bias(found: Sequence[SectionHeader], sections: Sections) -> int:
    """Return the address in memory that corresponds to the address 0 of the file, computed by ``.text`` as in GDB.

    :raises FormatError: the file has other sections than the module.
    """
    pairs = [(one, sections[one.name]) for one in found if one.is_loaded and one.name in sections]
    if not pairs or any(one.size != end - start for one, (start, end) in pairs):
        raise FormatError("the file has other sections than the module")
    one, (start, _) = next((pair for pair in pairs if pair[0].name == _TEXT), pairs[0])
    return start - one.address
