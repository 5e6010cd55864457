"""What the unwind data of a linked file says, as far as it can be converted."""

from __future__ import annotations

from typing import NamedTuple

from elftools.elf.elffile import ELFFile

from sframe_unwind import elf
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import CfiRules
from sframe_unwind.convert.report import Named
from sframe_unwind.elf.cfi import CfiProblem, FileCfi
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import symbols_of
from sframe_unwind.errors import FileError, FormatError, NoSFrameError
from sframe_unwind.sframe.listing import listed_functions
from sframe_unwind.sframe.section import Section
from sframe_unwind.translation.description import Description, Loss, of_cfi, of_sframe
from sframe_unwind.verify.comparison import check_extent
from sframe_unwind.verify.names import function_name

DWARF, SFRAME = "dwarf", "sframe"


class Source(NamedTuple):
    """What one kind of unwind data of a file says."""

    kind: str
    """:data:`DWARF` or :data:`SFRAME`."""
    version: int
    """The highest version of SFrame in it; 0 for DWARF."""
    arch: Arch
    descriptions: list[Description]
    """No two have the same extent."""
    losses: list[Loss]
    """What cannot be decoded."""
    problems: list[str]
    """What is wrong with records of which not even the function can be told."""


def read_source(file: ELFFile, kind: str | None) -> Source:
    """Return what a file's unwind data says.

    :param kind: which of its unwind data; ``None``: SFrame where it has any, else DWARF CFI.
    :raises FileError: the file is relocatable, or has no such data.
    :raises FormatError: the data is malformed as a whole.
    """
    if file["e_type"] == "ET_REL":
        raise FileError("a relocatable object file; convert what it is linked to")
    arch = elf.arch_of(file)
    layout = Layout(file)
    if kind != DWARF:
        try:
            return _sframe(elf.load_from(file, layout=layout), arch, layout)
        except NoSFrameError:
            if kind == SFRAME:
                raise
    return _dwarf(FileCfi(file, arch, layout), arch)


def _dwarf(cfi: FileCfi, arch: Arch) -> Source:
    source = Source(DWARF, 0, arch, [], [], [])
    rules = CfiRules(arch)
    for function in cfi.all_functions():
        if isinstance(function, CfiProblem):
            source.losses.append(Loss(function.start, function.end, function.why))
            continue
        try:
            source.descriptions.append(of_cfi(function, rules))
        except FormatError as error:
            source.losses.append(Loss(function.start, function.end, str(error)))
    source.problems.extend(dict.fromkeys(map(str, cfi.problems)))
    if not (source.descriptions or source.losses):
        raise FileError("neither SFrame nor DWARF CFI to convert")
    return source


def _sframe(sections: list[Section], arch: Arch, layout: Layout) -> Source:
    version = max((table.header.version for section in sections for table in section.tables), default=0)
    source = Source(SFRAME, version, arch, [], [], [])
    known: set[tuple[int, int]] = set()
    listed = list(listed_functions(sections))
    check_extent("SFrame", sum(one.fde.size for one in listed), sum(end - start for start, end in layout.code))
    for function in listed:
        extent = function.start, function.end
        limit = layout.code_end(function.start)
        try:
            if extent in known:
                raise FormatError("a second entry for the same code")
            if limit is None or function.end > limit or not function.fde.size:
                raise FormatError("an entry without code in the file")
            source.descriptions.append(of_sframe(function))
            known.add(extent)
        except FormatError as error:
            source.losses.append(Loss(*extent, str(error)))
    source.problems.extend(str(section.rest) for section in sections if section.rest is not None)
    return source


def named_losses(file: ELFFile, losses: list[Loss]) -> tuple[Named, ...]:
    """Return what was left out in the order of the addresses, with the names of the functions."""
    layout = Layout(file)
    symbols = symbols_of(file, layout)
    return tuple(Named(loss, function_name(loss.start, layout, symbols)) for loss in sorted(losses))


def section_size(file: ELFFile, name: str) -> int:
    """Return how many bytes the sections with a name have."""
    found = (section for section in file.iter_sections() if section.name == name)
    return sum(section["sh_size"] for section in found if section["sh_type"] != "SHT_NOBITS")
