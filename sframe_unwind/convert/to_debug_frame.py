"""Makes DWARF CFI from the SFrame of a linked file, for debuggers and profilers that do not read SFrame."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.address import RangeMap
from sframe_unwind.cfi.records import Records
from sframe_unwind.cfi.rules import CfiRules
from sframe_unwind.convert.debug_file import DebugSymbol, debug_file
from sframe_unwind.convert.elf_copy import ElfCopy, NewSection
from sframe_unwind.convert.kinds import SFRAME
from sframe_unwind.convert.report import Report
from sframe_unwind.convert.source import Source, check_linked, named_losses, read_source
from sframe_unwind.convert.writing import PLAIN_MODE, mode_of_copy
from sframe_unwind.elf import SECTION_NAME, ElfBinary, PathLike
from sframe_unwind.elf.cfi import DEBUG_FRAME
from sframe_unwind.elf.constants import SHT_PROGBITS, SYMBOL
from sframe_unwind.errors import EncodeError, FileError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.replacing import replacing, writing
from sframe_unwind.translation.description import Description, Loss, of_cfi
from sframe_unwind.translation.proof import prove
from sframe_unwind.translation.to_debug_frame import Made, make_debug_frame, without_gaps

DEBUG_FILE, COPY = "debug-file", "copy"
FORMS = (DEBUG_FILE, COPY)
"""A separate debug file, or a copy of the program with the section."""


class Wanted(NamedTuple):
    """The wanted result."""

    form: str = DEBUG_FILE
    all_functions: bool = False
    """Include functions that the file's DWARF CFI describes too (with the rules of more registers)."""


class _Written(NamedTuple):
    """The section that was written."""

    size: int
    """Size in bytes."""
    compared: int
    """Number of addresses at which it was compared with its source."""


def convert_to_debug_frame(path: PathLike, output: PathLike, wanted: Wanted = Wanted()) -> Report:  # noqa: B008  # it cannot change
    """Write DWARF CFI made from the SFrame of a linked file, after a proof that both have the same rules.

    :raises FileError: a file cannot be read or written.
    :raises NoSFrameError: there is nothing to convert.
    :raises FormatError: SFrame is malformed as a whole.
    :raises EncodeError: no function is left to describe.
    :raises TranslationError: the result has other rules than its source; nothing is written.
    """
    with elf.opened(path) as binary:
        check_linked(binary)
        source = read_source(binary, SFRAME)
        if not wanted.all_functions:
            source = source._replace(descriptions=list(_not_in(source.descriptions, binary.cfi.ranges())))
        descriptions = list(without_gaps(source.descriptions))
        empty = [
            Loss(one.start, one.end, "an entry without rows") for one in source.descriptions if not any(one.rules[1])
        ]
        existing = _existing(binary) if wanted.form == COPY else b""
        made = make_debug_frame(descriptions, source.arch, len(existing))
        if len(made.losses) == len(descriptions):
            raise EncodeError(f"{path}: no function is described by SFrame alone")
        data = existing + made.data
        with (
            writing(output),
            replacing(output, mode_of_copy(path, output) if wanted.form == COPY else PLAIN_MODE) as temporary,
        ):
            if wanted.form == COPY:
                copy = ElfCopy(binary, DEBUG_FRAME, None)
                copy.write(temporary, NewSection(DEBUG_FRAME, SHT_PROGBITS, data, None))
            else:
                symbols = _symbols(binary, descriptions)
                temporary.write_bytes(debug_file(binary, DEBUG_FRAME, data, symbols))
            compared = _prove(descriptions, made, temporary, len(existing))
            losses = [*source.losses, *empty, *made.losses]
            return _report(
                output=output,
                binary=binary,
                wanted=wanted,
                source=source,
                losses=losses,
                made=_Written(len(made.data), compared),
            )


def _not_in(descriptions: Iterable[Description], ranges: list[tuple[int, int]]) -> Iterable[Description]:
    """Return the descriptions of functions that do not overlap any range."""
    known = RangeMap((start, end, None) for start, end in ranges)
    return (one for one in descriptions if not known.overlapping(one.start, one.end))


def _symbols(binary: ElfBinary, descriptions: Iterable[Description]) -> list[DebugSymbol]:
    """Return the symbols of the debug file of a stripped program: the dynamic ones, and one for each other function.

    LLDB looks for CFI outside ``.eh_frame`` only for addresses with a symbol, and ignores dynamic symbols if the debug
    file has a symbol table.  For a program with a symbol table, the debug file gets none.
    """
    dynamic = binary.named(".dynsym")
    if binary.named(".symtab") is not None:
        return []
    found = []
    if dynamic is not None:
        names = binary.strings(dynamic)
        for at, info, _, section, address, size in binary.records(SYMBOL, binary.contents(dynamic)):
            if section:
                name = names[at : names.find(b"\0", at)].decode("utf-8", "surrogateescape")
                found.append(DebugSymbol(name, address, size, info))
    others = (one for one in descriptions if binary.symbols.find(one.start) is None)
    return found + [DebugSymbol(f"unnamed_{one.start:x}", one.start, one.end - one.start) for one in others]


def _existing(binary: ElfBinary) -> bytes:
    section = binary.named(DEBUG_FRAME)
    return b"" if section is None else binary.contents(section)


def _prove(descriptions: list[Description], made: Made, written: Path, start: int) -> int:
    """Compare the written data, from a section offset on, with its source."""
    with elf.opened(written) as binary:
        section = binary.named(DEBUG_FRAME)
        if section is None:
            raise FileError(f"{written}: the section that was written is not there")
        records = Records(binary.contents(section), 0, binary.arch, debug_frame=True)
        rules = CfiRules(binary.arch)
        fdes = [fde for offset, fde in records.fdes(True, []) if offset >= start]
    return prove(descriptions, (of_cfi(fde.decode(), rules) for fde in fdes), made.losses, binary.arch)


def _report(
    output: PathLike, binary: ElfBinary, wanted: Wanted, source: Source, losses: list[Loss], made: _Written
) -> Report:
    lost = {(loss.start, loss.end) for loss in losses}
    kept = [one for one in source.descriptions if (one.start, one.end) not in lost]
    return Report(
        file=binary.name,
        output=os.fspath(output),
        made=f".debug_frame from SFrame version {source.version}",
        functions=len(kept),
        code_bytes=sum(one.end - one.start for one in kept),
        size=made.size,
        source_size=binary.size_of(SECTION_NAME),
        address=0,
        addresses_compared=made.compared,
        losses=named_losses(binary, losses),
        problems=tuple(source.problems),
        hint=_hint(binary) if wanted.form == DEBUG_FILE else "",
    )


def _hint(binary: ElfBinary) -> str:
    """Return the places where debuggers look for the separate debug file of a program."""
    found = binary.build_id
    if found:
        return f"debuggers look for it in their folder of debug files, as .build-id/{found[:2]}/{found[2:]}.debug"
    return "the program has no build ID: debuggers find it only by the name in .gnu_debuglink"
