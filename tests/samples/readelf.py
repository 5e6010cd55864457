"""Parses the output of readelf about SFrame and symbols, as the reference for the samples.

`readelf --sframe` is read in the form that binutils 2.40 to 2.47 print.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.hanging import HANG

TIMEOUT = HANG
"""Seconds that one run of readelf may take."""

_VERSION = re.compile(r"Version: SFRAME_VERSION_(\d)")
_FLAGS = re.compile(r"SFRAME_F_(\w+)")
_FUNCTION = re.compile(r"func idx \[\d+\]: pc = 0x([0-9a-f]+), size = (\d+) bytes(.*)")
_ROW = re.compile(r"([0-9a-f]{16})  (?:(RA undefined)|(\S+) +(\S+) +(\S+))")


@dataclass(frozen=True)
class Row:
    """One FRE, as readelf prints it."""

    start: int
    """An address; in a mask function the offset within a repetition."""
    cfa: str
    fp: str
    ra: str

    @property
    def offsets(self) -> list[int]:
        """The numbers in the rules, as bytes."""
        found = re.findall(r"[+-]\d+", " ".join((self.cfa, self.fp, self.ra)))
        return [int(number) for number in found]


@dataclass(frozen=True)
class Function:
    """One FDE and its rows."""

    start: int
    size: int
    attributes: str
    """The text after the size: `attr = "F"` for flexible, `pauth = B key`."""
    mask: bool
    rows: tuple[Row, ...]

    @property
    def flexible(self) -> bool:
        """Whether the rows are flexible ones, which version 3 brought."""
        return '"F' in self.attributes


@dataclass(frozen=True)
class SFrame:
    """The section of a file."""

    version: int
    flags: frozenset[str]
    functions: tuple[Function, ...]

    def at(self, address: int) -> Function | None:
        """Return the function that starts at an address."""
        return next((function for function in self.functions if function.start == address), None)


@dataclass(frozen=True)
class Symbol:
    """Where a symbol is, and its size in bytes."""

    address: int
    size: int


def read_sframe(tools: Path, file: Path) -> SFrame:
    """Return the SFrame of a file as the readelf in `tools` prints it; ValueError if it prints none."""
    text = _readelf(tools, "--sframe", file)
    version = _VERSION.search(text)
    if version is None:
        raise ValueError(f"{file}: no SFrame: {text.strip()}")
    header, *parts = re.split(r"\n(?= +func idx)", text)
    functions = tuple(_function(part) for part in parts)
    return SFrame(int(version[1]), frozenset(_FLAGS.findall(header)), functions)


def read_symbols(tools: Path, file: Path, dynamic: bool = False) -> dict[str, Symbol]:
    """Return the defined symbols of a file by name; with `dynamic`, those of the dynamic linker."""
    text = _readelf(tools, "--dyn-syms" if dynamic else "--syms", file, "-W")
    symbols = {}
    for line in text.splitlines():
        fields = line.split()
        # Number, value, size, type, binding, visibility, section, name. Large sizes are hexadecimal.
        if len(fields) >= 8 and fields[0].endswith(":") and fields[6].isdigit():
            symbols[fields[7]] = Symbol(int(fields[1], 16), int(fields[2], 0))
    return symbols


def read_sections(tools: Path, file: Path) -> dict[str, Symbol]:
    """Return the sections of a file by name."""
    found = re.findall(r"\] (\.\S+) +\S+ +([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) ", _readelf(tools, "-S", file, "-W"))
    return {name: Symbol(int(address, 16), int(size, 16)) for name, address, size in found}


def read_dwarf_ranges(tools: Path, file: Path) -> list[range]:
    """Return the addresses that the file's DWARF unwind data covers."""
    text = _readelf(tools, "--debug-dump=frames", file)
    found = re.findall(r"FDE cie=\w+ pc=([0-9a-f]+)\.\.([0-9a-f]+)", text)
    return [range(int(start, 16), int(end, 16)) for start, end in found]


def _function(text: str) -> Function:
    first, _, rows = text.partition("\n")
    found = _FUNCTION.search(first)
    if found is None:
        raise ValueError(f"not a function: {first}")
    return Function(int(found[1], 16), int(found[2]), found[3].lstrip(", "), "STARTPC[m]" in rows, tuple(_rows(rows)))


def _rows(text: str) -> list[Row]:
    rows = []
    for start, undefined, cfa, fp, ra in _ROW.findall(text):
        rows.append(Row(int(start, 16), cfa, fp, undefined or ra))
    return rows


def _readelf(tools: Path, option: str, file: Path, *more: str) -> str:
    """Return the output of readelf; ValueError if it fails."""
    command = [str(tools / "readelf"), option, *more, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
