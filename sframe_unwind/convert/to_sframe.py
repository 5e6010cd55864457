"""Makes files with SFrame from the unwind data of a file."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path

from sframe_unwind import elf
from sframe_unwind.convert.consumers import target_for
from sframe_unwind.convert.elf_copy import ElfCopy, NewSection
from sframe_unwind.convert.kinds import SFRAME, TITLES
from sframe_unwind.convert.linkable import with_sframe
from sframe_unwind.convert.object_file import object_file
from sframe_unwind.convert.report import Report
from sframe_unwind.convert.source import Source, check_linked, named_losses, read_source
from sframe_unwind.convert.writing import PLAIN_MODE, mode_of_copy
from sframe_unwind.elf import SECTION_NAME, ElfBinary, PathLike
from sframe_unwind.elf.cfi import DEBUG_FRAME, EH_FRAME
from sframe_unwind.elf.constants import PT_GNU_SFRAME, SHT_GNU_SFRAME
from sframe_unwind.errors import EncodeError, FileError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.replacing import replacing, writing
from sframe_unwind.sframe import encode
from sframe_unwind.sframe.constants import FEATURES
from sframe_unwind.sframe.listing import listed_functions
from sframe_unwind.sframe.section import Section
from sframe_unwind.translation.compact import MAX_ROWS, Compact, compacted
from sframe_unwind.translation.description import Loss, of_sframe
from sframe_unwind.translation.proof import prove
from sframe_unwind.translation.to_sframe import Made, make_table

_FRAGILE = "strip and objcopy would make this copy unloadable: there is no room for its program headers at the front"
SECTION, OBJECT, COPY = "section", "object", "copy"
_LINKABLE = " or ".join(str(version) for version, has in FEATURES.items() if has.linkable)
"""The versions of SFrame that an object file can get."""
FORMS = (COPY, SECTION, OBJECT)
"""A copy of the file with the section, the bytes of the section, or an object file with the section."""


USUAL_ROWS = MAX_ROWS
"""Default of ``convert --compact``: the most rows of an entry."""


class Wanted(NamedTuple):
    """The wanted result."""

    version: int | None = None
    """2 or 3; ``None``: the newest version that the readers accept."""
    consumers: tuple[str, ...] = ()
    """Readers that must accept the result; see :data:`sframe_unwind.convert.consumers.READERS`."""
    form: str = COPY
    source: str | None = None
    """One of :data:`sframe_unwind.convert.kinds.SOURCES`; ``None``: SFrame if the file has any, else DWARF CFI."""
    address: int | None = None
    """Address of the section, except in a copy; ``None``: the address that it would have in a copy."""
    max_rows: int | None = None
    """Make the section smaller: an entry for neighbouring functions has at most so many rows; ``None``: do not."""


def convert_to_sframe(path: PathLike, output: PathLike, wanted: Wanted = Wanted()) -> Report:  # noqa: B008  # it cannot change
    """Write SFrame made from the unwind data of a file, linked or not, after a proof that both have the same rules.

    :raises FileError: a file cannot be read or written, or there is nothing to convert.
    :raises FormatError: the unwind data is malformed as a whole.
    :raises EncodeError: a reader does not accept the version, or no function can be expressed.
    :raises TranslationError: the result has other rules than its source; nothing is written.
    """
    with elf.opened(path) as binary:
        if binary.is_object:
            content, report = convert_object(binary, output, wanted)
            with writing(output), replacing(output, mode_of_copy(path, output)) as temporary:
                temporary.write_bytes(content)
            return report
        made = conversion(binary, wanted)
        with (
            writing(output),
            replacing(output, mode_of_copy(path, output) if wanted.form == COPY else PLAIN_MODE) as temporary,
        ):
            if wanted.form == COPY and made.copy is not None:
                new = NewSection(SECTION_NAME, SHT_GNU_SFRAME, made.section, PT_GNU_SFRAME)
                made.copy.write(temporary, new)
            elif wanted.form == OBJECT:
                order = made.source.arch.byteorder
                new_file = object_file(
                    name=SECTION_NAME,
                    section_type=SHT_GNU_SFRAME,
                    data=made.section,
                    address=made.address,
                    model=binary.header,
                    byteorder=order,
                )
                temporary.write_bytes(new_file)
            else:
                temporary.write_bytes(made.section)
            compared = made.proved(_written(temporary, wanted.form, made.address))
            # Before the file gets its name: reading symbols can also fail.
            return _report(output, binary, made, compared, wanted)


def convert_object(binary: ElfBinary, output: PathLike, wanted: Wanted) -> tuple[bytes, Report]:
    """Return a copy of an object file with SFrame and the relocations of its start fields.

    :param output: name of the copy.
    :raises FileError: there is nothing to convert, or the file has SFrame already.
    :raises FormatError: the unwind data is malformed as a whole.
    :raises EncodeError: a reader does not accept the version, or no function can be expressed.
    :raises TranslationError: the result has other rules than its source.
    """
    if wanted.form != COPY or wanted.max_rows is not None:
        raise FileError("an object file: only a copy can be made of it, and not with --compact")
    target = target_for(wanted.consumers, wanted.version)
    if not FEATURES[target.version].linkable:
        raise FileError(f"an object file: version {_LINKABLE} only, which GNU ld 2.46 and later link")
    if binary.has_sframe:
        raise FileError("an object file: it has SFrame already")
    source = read_source(binary, wanted.source)
    made = make_table(source.descriptions, source.arch, target)
    if not any(function.rows for function in made.table.functions):
        raise EncodeError(f"{binary.name}: no function that version {target.version} can express")
    content, section = with_sframe(binary, made.table)
    conversion = Conversion(source=source, made=made, copy=None, section=section, address=0, compact=None)
    with elf.parsed(BytesIO(content), os.fspath(output)) as result:
        compared = conversion.proved(result.sframe)
    return content, _report(output, binary, conversion, compared, wanted)


class Conversion(NamedTuple):
    """The result of converting an open file, before it is written and proved."""

    source: Source
    made: Made
    copy: ElfCopy | None
    """Writes the section into a copy of a linked file."""
    section: bytes
    address: int
    """Address of the section."""
    compact: Compact | None
    """How the section was made smaller; ``None``: it was not."""

    def proved(self, result: list[Section]) -> int:
        """Compare the written data with the source; return the number of addresses that were compared.

        :param result: decoded from the written data.
        :raises TranslationError: the rules differ.
        """
        results = map(of_sframe, listed_functions(result))
        padding = () if self.compact is None else self.compact.padding
        return prove(self.source.descriptions, results, self.made.losses, self.source.arch, frozenset(padding))

    @property
    def losses(self) -> list[Loss]:
        """The functions that are not in the result."""
        return [*self.source.losses, *self.made.losses]


def conversion(binary: ElfBinary, wanted: Wanted = Wanted()) -> Conversion:  # noqa: B008  # it cannot change
    """Return the result of converting an open file.

    :raises FileError: there is nothing to convert, or no room for the section, or the file is not linked.
    :raises FormatError: the unwind data is malformed as a whole.
    :raises EncodeError: a reader does not accept the version, or no function can be expressed.
    """
    check_linked(binary)
    target = target_for(wanted.consumers, wanted.version)
    source = read_source(binary, wanted.source)
    made = make_table(source.descriptions, source.arch, target)
    if not any(function.rows for function in made.table.functions):
        raise EncodeError(f"{binary.name}: no function that version {target.version} can express")
    copy = ElfCopy(binary, SECTION_NAME, PT_GNU_SFRAME)
    address = copy.address if wanted.address is None or wanted.form == COPY else wanted.address
    compact = None
    if wanted.max_rows is not None:
        # GNU libsframe swaps the bytes of a section in the other byte order in place, those of shared rows more than
        # once.
        share = source.arch.byteorder == "little" or bool(wanted.consumers)
        compact = compacted(made.table, binary.padding.fills, wanted.max_rows, share)
        made = made._replace(table=compact.table)
    section = encode.encode(encode.SectionSpec(address, (made.table,)))
    return Conversion(source=source, made=made, copy=copy, section=section, address=address, compact=compact)


def _written(path: Path, form: str, address: int) -> list[Section]:
    """Return the section that was written, decoded.

    A copy keeps SFrame in sections of other names, such as ``.init.sframe`` of kernels.
    """
    if form == SECTION:
        return [Section(path.read_bytes(), address)]
    return [section for section in elf.load(path) if section.address == address]


def _report(output: PathLike, binary: ElfBinary, conversion: Conversion, compared: int, wanted: Wanted) -> Report:
    source, section = conversion.source, Section(conversion.section, conversion.address)
    names = (SECTION_NAME,) if source.kind == SFRAME else (EH_FRAME, DEBUG_FRAME)
    origin = f"version {source.version}" if source.kind == SFRAME else TITLES[source.kind]
    compact = conversion.compact
    padding = 0 if compact is None else sum(end - start for start, end in compact.padding)
    return Report(
        file=binary.name,
        output=os.fspath(output),
        made=f"SFrame version {conversion.made.table.version} from {origin}",
        functions=len(source.descriptions) - len(conversion.made.losses),
        code_bytes=section.covered() - padding,
        size=section.size,
        source_size=sum(map(binary.size_of, names)),
        address=section.address,
        addresses_compared=compared,
        losses=named_losses(binary, conversion.losses),
        problems=tuple(source.problems),
        hint=_FRAGILE
        if wanted.form == COPY and conversion.copy is not None and not conversion.copy.survives_strip
        else "",
        compact=compact,
        shares=source.shares,
        replaced=named_losses(binary, source.replaced),
    )
