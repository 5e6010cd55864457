"""A module in a debugger's list: its unwind data is opened when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Callable

from sframe_unwind.arch import Arch
from sframe_unwind.debugger.debug_files import DebugFile, FindDebugFiles
from sframe_unwind.elf.rewritten import rewriter
from sframe_unwind.errors import FormatError, MemoryReadError
from sframe_unwind.image.elf_image import build_id_in, read_image
from sframe_unwind.memory import LazyBytes, ReadMemory, lazy_memory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module

if TYPE_CHECKING:
    from sframe_unwind.cfi.section import CfiSection, PlacedCfi
    from sframe_unwind.unwind.code_match import ModuleCode

SFRAME, EH_FRAME, EH_FRAME_HDR, TEXT = ".sframe", ".eh_frame", ".eh_frame_hdr", ".text"
"""The names of the sections that are used."""


class SectionRange(NamedTuple):
    """The place of a section in memory."""

    start: int
    """Address of its first byte."""
    end: int
    """Address after its last byte."""


def loaded_module(
    name: str,
    ranges: Sequence[tuple[int, int]],
    sections: Mapping[str, SectionRange],
    header: int,
    read: ReadMemory,
    arch: Arch,
    code_size: int | None = None,
    debug_files: FindDebugFiles | None = None,
    find_sframe: Callable[[], SectionRange | None] | None = None,
    code_files: FindDebugFiles | None = None,
) -> Module:
    """Return a module; none of its data has been read yet.

    :param name: its path.
    :param ranges: start and end addresses of its code, which may include other sections between.
    :param sections: the sections that the debugger knows, by their names; with those of
        :data:`sframe_unwind.elf.rewritten.MARKS`, if it knows them.
    :param header: address of its ELF header.
    :param read: reads the memory of the process.
    :param code_size: size of its code in bytes, if it differs from the size of the ranges.
    :param find_sframe: finds the section ``.sframe`` if the debugger does not know its address.
    :param debug_files: returns the files whose ``.debug_frame`` the debugger uses for the module.
    :param code_files: returns the files of which one is the module's own, with its code.
    """

    def data(place: SectionRange) -> tuple[int, LazyBytes]:
        start, end = place
        return start, lazy_memory(read, start, end - start)

    def load() -> Section | None:
        place = sections.get(SFRAME) or (find_sframe() if find_sframe is not None else None)
        if place is not None:
            address, contents = data(place)
            return Section(contents, address) if len(contents) else None
        # The section headers may have been stripped; memory then has the program headers.
        try:
            image = read_image(read, header)
        except (FormatError, MemoryReadError):
            return None
        return image.sframe_section(read)

    def load_cfi() -> CfiSection | None:
        # The decoder is imported for the first CFI that is needed, not at each start of a debugger.
        from sframe_unwind.cfi.section import CfiSection, SectionData

        if EH_FRAME not in sections:
            return None
        index = SectionData(*data(sections[EH_FRAME_HDR])) if EH_FRAME_HDR in sections else None
        return CfiSection(SectionData(*data(sections[EH_FRAME])), index, arch)

    def load_build_id() -> str:
        return build_id_in(read_image(read, header), read, arch.byteorder)

    def load_debug_cfi() -> Sequence[PlacedCfi]:
        if debug_files is None:
            return ()
        from sframe_unwind.debugger.debug_frame import placed_by_sections

        return placed_by_sections(debug_files(load_build_id), arch, sections)

    def load_rewriter() -> str:
        return rewriter({section: start for section, (start, _) in sections.items()})

    module = Module(
        name=name,
        ranges=ranges,
        load=load,
        load_cfi=load_cfi,
        code_size=code_size,
        load_build_id=load_build_id,
        load_debug_cfi=load_debug_cfi,
        load_rewriter=load_rewriter,
    )
    if code_files is not None:
        find_code = code_files
        module.load_code = code_loader(
            lambda: find_code(load_build_id), lambda: read_image(read, header).bias, arch, read
        )
    return module


def code_loader(
    find_files: Callable[[], Sequence[DebugFile]], find_bias: Callable[[], int], arch: Arch, read: ReadMemory
) -> Callable[[], ModuleCode | None]:
    """Return the function that opens the machine code of a module, once.

    :param find_files: returns the files of which one is the module's own.
    :param find_bias: returns the address in the process minus the address in the file; raises :class:`SFrameError`.
    """

    @cache
    def load_code() -> ModuleCode | None:
        # The interpreter is imported when the user wants it, not at each start of a debugger.
        from sframe_unwind.debugger.code_of_file import code_of_files

        return code_of_files(find_files(), find_bias, arch, read)

    return load_code
