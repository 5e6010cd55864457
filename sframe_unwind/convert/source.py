"""Reads the unwind data of a linked file, as far as it can be converted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import CfiRules
from sframe_unwind.convert.kinds import CODE, DWARF, DWARF_AND_CODE, ENTRY_CODE, SFRAME, Share
from sframe_unwind.convert.report import Named
from sframe_unwind.elf import SECTION_NAME, ElfBinary
from sframe_unwind.elf.cfi import EH_FRAME, CfiProblem
from sframe_unwind.errors import FileError, FormatError, NoSFrameError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.displaced import displacement
from sframe_unwind.sframe.listing import Malformed, listed_functions
from sframe_unwind.sframe.section import highest_version
from sframe_unwind.translation.description import Description, Loss, of_cfi, of_sframe


class Source(NamedTuple):
    """One kind of unwind data of a file."""

    kind: str
    """One of :data:`sframe_unwind.convert.kinds.SOURCES`."""
    version: int
    """The highest version of SFrame in it; 0 for DWARF."""
    arch: Arch
    descriptions: list[Description]
    """The functions; no two have the same extent."""
    losses: list[Loss]
    """Functions that cannot be decoded."""
    problems: list[str]
    """Errors in records whose function is not known."""
    shares: tuple[Share, ...] = ()
    """The part of each kind of unwind data, if the machine code was used."""
    replaced: tuple[Loss, ...] = ()
    """The functions whose CFI the code proves wrong, with what is wrong."""


def read_source(binary: ElfBinary, kind: str | None) -> Source:
    """Return the unwind data of a file.

    :param kind: the kind of unwind data to read; ``None``: SFrame if the file has any and no tool made it wrong
        after linking, else DWARF CFI.
    :raises FileError: the file has no such data.
    :raises FormatError: the data is malformed as a whole.
    :raises MissingExtraError: the package that decodes machine code is not installed.
    """
    binary.check_sections()
    if kind is None and _is_stale(binary):
        kind = DWARF
    if kind in (CODE, DWARF_AND_CODE):
        return _by_code(binary, kind)
    if kind != DWARF:
        try:
            return _sframe(binary)
        except NoSFrameError:
            if kind == SFRAME:
                raise
    return _dwarf(binary)


def _is_stale(binary: ElfBinary) -> bool:
    """Return whether a file has SFrame and CFI, and a tool has changed it after linking so that the SFrame is wrong.

    :raises FormatError: the CFI is not a sequence of records.
    """
    if binary.rewriter:
        return bool(binary.cfi.ranges())
    with suppress(SFrameError):
        starts = [start for section in binary.sframe for table in section.tables for start in table.extents()[0]]
        return displacement(starts, binary.cfi.ranges()) != 0
    return False


def check_linked(binary: ElfBinary) -> None:
    """Check that a file is linked.

    :raises FileError: it is an object file, whose functions have no addresses.
    """
    if binary.is_object:
        raise FileError("a relocatable object file; convert what it is linked to")


def _dwarf(binary: ElfBinary) -> Source:
    arch, cfi = binary.arch, binary.cfi
    source = Source(kind=DWARF, version=0, arch=arch, descriptions=[], losses=[], problems=[])
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
        raise FileError(binary.without_contents(SECTION_NAME, EH_FRAME) or "neither SFrame nor DWARF CFI to convert")
    return source


def _by_code(binary: ElfBinary, kind: str) -> Source:
    """Return the rows that the machine code proves, for all functions or for those that the CFI cannot give."""
    from sframe_unwind.convert.completed import completed  # most conversions do without the interpreter

    source = Source(kind=kind, version=0, arch=binary.arch, descriptions=[], losses=[], problems=[])
    if kind == DWARF_AND_CODE and binary.cfi.ranges():
        source = _dwarf(binary)._replace(kind=kind)
    made = completed(binary, source.descriptions)
    if not (made.kept or made.by_code):
        raise FileError("no function whose machine code tells where its frame is")
    shares = [_share(DWARF, made.kept)] * (kind == DWARF_AND_CODE)
    by_kernel = [_share(ENTRY_CODE, made.outermost)] * bool(made.outermost)
    return source._replace(
        descriptions=[*made.kept, *made.by_code, *made.outermost],
        losses=made.losses,
        shares=(*shares, _share(CODE, made.by_code)._replace(**made.rules._asdict()), *by_kernel),
        replaced=tuple(made.replaced),
    )


def _share(kind: str, descriptions: Sequence[Description]) -> Share:
    return Share(kind, len(descriptions), sum(one.end - one.start for one in descriptions))


def _sframe(binary: ElfBinary) -> Source:
    arch, sections = binary.arch, binary.sframe
    version = highest_version(sections)
    source = Source(kind=SFRAME, version=version, arch=arch, descriptions=[], losses=[], problems=[])
    known: set[tuple[int, int]] = set()
    malformed: list[Malformed] = []
    listed = list(listed_functions(sections, malformed))
    source.losses.extend(Loss(*one) for one in malformed)
    binary.check_extent("SFrame", sum(one.fde.size for one in listed))
    for function in listed:
        extent = function.start, function.end
        limit = binary.layout.code_end(function.start)
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


def named_losses(binary: ElfBinary, losses: Iterable[Loss]) -> tuple[Named, ...]:
    """Return the functions that were left out, with their names, in the order of their addresses."""
    return tuple(Named(loss, binary.function_name(loss.start)) for loss in sorted(losses))
