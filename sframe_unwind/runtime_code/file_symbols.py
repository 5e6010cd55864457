"""Finds the symbols of the registration lists in ELF files, where no debugger is available to find them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from sframe_unwind.elf import ElfBinary, PathLike, opened
from sframe_unwind.elf.constants import SHT_DYNSYM, SHT_SYMTAB, SYMBOL
from sframe_unwind.errors import FileError
from sframe_unwind.runtime_code.head import FindSymbol
from sframe_unwind.runtime_code.names import JIT_SYMBOL, LIST_FUNCTION, LIST_SYMBOL

_NAMES = (LIST_SYMBOL, LIST_FUNCTION, JIT_SYMBOL)


def finder(files: Iterable[tuple[PathLike, int]]) -> FindSymbol:
    """Return the ``find`` function for :class:`sframe_unwind.runtime_code.source.RunTimeCode`.

    :param files: the executable and the shared libraries, each with its load bias (address in the process minus
        address in the file).  Files that cannot be read are ignored.
    """
    found: dict[str, list[int]] = {}
    for path, bias in files:
        with suppress(FileError):
            for name, address in file_symbols(path).items():
                found.setdefault(name, []).append(address + bias)
    return lambda name: found.get(name, [])


def file_symbols(path: PathLike) -> dict[str, int]:
    """Return the symbols of the registration lists that a file defines, by name.  Addresses are those in the file.

    :raises FileError: the file cannot be read.
    """
    with opened(path) as binary:
        return {name: address for name in _NAMES for address in _addresses(binary, name)}


def _addresses(binary: ElfBinary, name: str) -> Iterator[int]:
    wanted = name.encode() + b"\0"
    for kind in (SHT_DYNSYM, SHT_SYMTAB):
        for section in binary.sections:
            if section.type != kind:
                continue
            strings = binary.strings(section)
            if wanted not in strings:  # the usual case; it saves decoding the symbols
                continue
            for at, _, _, number, value, _ in binary.records(SYMBOL, binary.contents(section)):
                if number and strings[at : at + len(wanted)] == wanted:
                    yield value
