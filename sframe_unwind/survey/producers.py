"""Finds the compiler, assembler and linker of a file, as far as the file names them.

Compilers, LLD and mold write their names to ``.comment``.  gold and Go write notes.  GNU as is named only by the debug
information of assembly code (``DW_AT_producer``), and GNU ld nowhere.
"""

from __future__ import annotations

import re

from sframe_unwind.elf import ElfBinary, SectionHeader
from sframe_unwind.named_tuple import NamedTuple

_COMMENT, _GOLD, _GO = ".comment", ".note.gnu.gold-version", ".note.go.buildid"
_STRINGS = (".debug_str", ".debug_line_str")
_GNU_AS = re.compile(rb"GNU AS (\d+\.\d+[.\d]*)")
_LINKERS = re.compile(r"^(?:Linker: )?(LLD|mold)\b[^\d]*(\d+\.\d+[.\d]*)?")
_GCC = re.compile(r"^GCC: \(.*\) (\d+\.\d+[.\d]*)")
_OTHERS = re.compile(r"^.*?\b(clang|rustc|GHC|ldc|flang|zig)\b(?: version)?[ :]*(\d+\.\d+[.\d]*)?", re.IGNORECASE)
_MOST = 1 << 20
"""Maximum number of bytes of a section that are searched, because names are at its start, and a size may be damaged."""
_LISTED = 4
"""Maximum number of producers of one kind that are named; a file linked from many objects can have dozens."""


class Producers(NamedTuple):
    """Names with versions.  Several of one kind are joined by ``" + "``; empty: the file names none."""

    compiler: str
    assembler: str
    linker: str


def producers_of(binary: ElfBinary) -> Producers:
    """Return the producers that a file names.

    :raises FileError: a compressed section cannot be decompressed, or has an implausibly large size.
    """
    sections = {section.name: section for section in binary.sections}
    compilers: list[str] = []
    linkers: list[str] = []
    if _COMMENT in sections:
        for text in _start(binary, sections[_COMMENT]).split(b"\0"):
            _add(text.decode("utf-8", "replace").strip(), compilers, linkers)
    if _GO in sections:
        compilers.append("Go")
    if _GOLD in sections:
        # The note: three words, the owner "GNU\0", then "gold 1.16".
        linkers.append(_start(binary, sections[_GOLD])[16:80].partition(b"\0")[0].decode("utf-8", "replace"))
    assemblers = [
        f"GNU as {version.decode()}"
        for name in _STRINGS
        if name in sections
        for version in _GNU_AS.findall(_start(binary, sections[name]))
    ]
    return Producers(*map(_joined, (compilers, assemblers, linkers)))


def _start(binary: ElfBinary, section: SectionHeader) -> bytes:
    """Return the part of a section that is searched, decompressed."""
    if section.is_compressed:
        return binary.contents(section)[:_MOST]
    return binary.read(section.offset, min(section.size, _MOST))


def _add(text: str, compilers: list[str], linkers: list[str]) -> None:
    if found := _LINKERS.match(text):
        linkers.append(" ".join(filter(None, found.groups())))
    elif found := _GCC.match(text):
        compilers.append(f"GCC {found[1]}")
    elif found := _OTHERS.match(text):
        compilers.append(" ".join(filter(None, found.groups())))
    elif text:
        compilers.append(text[:40])


def _joined(names: list[str]) -> str:
    known = sorted(set(filter(None, names)))
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return " + ".join(known[:_LISTED]) + more
