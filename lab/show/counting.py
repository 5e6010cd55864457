"""Compares the listings of a file with readelf: every row of SFrame and every rule of the CFI must be there.

    python -m lab.show.counting FILE...

prints how many rows were compared in each file.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

from lab.cfi.tables import Table, by_readelf
from sframe_unwind import elf
from sframe_unwind.arch import Arch
from sframe_unwind.cli import main as command_line
from tests.samples.build import toolchain
from tests.samples.readelf import Row, read_sframe

Cells = dict[str, str]
Listed = dict[int, dict[str, Optional[Cells]]]
"""By address: the rules that begin there, by column; ``None``: a column ends."""

_PLACE = re.compile(r"(\(?)(\w+?)([+-]\d+)?(\)?)")


class Counts(NamedTuple):
    """The numbers of compared rows."""

    sframe: int
    dwarf: int


def shown(path: Path) -> list[dict[str, Any]]:
    """Return the functions of ``show --json``."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert command_line(["show", str(path), "--json", "--no-code", "--no-source"]) in (0, 1)
    found: list[dict[str, Any]] = json.loads(output.getvalue())["functions"]
    return found


def compare(path: Path, tools: Path) -> Counts:
    """Compare the listings of all functions of a linked file with the output of readelf.

    :param tools: the folder of readelf.
    """
    with elf.opened(path) as binary:
        arch, has_sframe = binary.arch, binary.has_sframe
    rules: Listed = {}
    for function in shown(path):
        for row in function["rows"]:
            rules.setdefault(row["address"], {}).update(row.get("rules", {}))
    sframe = sum(_check_sframe(rules, tools, path, arch)) if has_sframe else 0
    return Counts(sframe, sum(_check_dwarf(rules, tools, path, arch)))


def _check_sframe(rules: Listed, tools: Path, path: Path, arch: Arch) -> Iterator[int]:
    """Check that each row of readelf begins in the listing with the same rule; yield 1 for each."""
    for function in read_sframe(tools, path).functions:
        rows = function.rows
        if function.mask:
            size = _repetition(path, function.start)
            rows = tuple(row for block in range(0, function.size, size) for row in _moved(rows, function.start + block))
        for row in rows:
            if function.start <= row.start < function.start + function.size:
                assert rules[row.start]["SFrame"] == _cells(row, arch), f"{path}: row at {row.start:#x}"
                yield 1


def _repetition(path: Path, start: int) -> int:
    (section,) = elf.load(path)
    return next(one.fde.repetition_size for one in section.functions() if one.start == start)


def _moved(rows: tuple[Row, ...], start: int) -> Iterator[Row]:
    return (Row(start + row.start, row.cfa, row.fp, row.ra) for row in rows)


def _cells(row: Row, arch: Arch) -> Cells:
    """Return a row of readelf with the debuggers' names of registers."""
    if "undefined" in row.ra:
        return {"cfa": "", "fp": "", "ra": "undef"}
    ra, signed = row.ra.replace("[s]", ""), "[s]" if "[s]" in row.ra else ""
    # AMD64 has the return address at a fixed offset.
    ra = {"f": "c-8", "U": "c-8" if arch.ra is None else "u"}.get(ra, ra)
    return {"cfa": _named(row.cfa, arch), "fp": _named(row.fp, arch), "ra": _named(ra, arch) + signed}


def _named(text: str, arch: Arch) -> str:
    opening, name, offset, closing = _PLACE.fullmatch(text).groups()  # type: ignore[union-attr]
    names = {"sp": arch.register_name(arch.sp), "fp": arch.register_name(arch.fp), "c": "c", "u": "u"}
    if name not in names:
        names[name] = arch.register_name(int(name[1:]))
    offset = offset or ""
    if not opening and name != "c" and offset and int(offset) == 0:
        offset = ""
    return f"{opening}{names[name]}{offset}{closing}"


def _check_dwarf(rules: Listed, tools: Path, path: Path, arch: Arch) -> Iterator[int]:
    """Check that the listing has each rule of readelf at its address; yield 1 for each row."""
    begins = sorted(at for at, found in rules.items() if "DWARF CFI" in found)
    for (start, end), table in by_readelf(tools / "readelf", path, arch).items():
        for at in table:
            if not start <= at < end:
                continue
            found = rules[begins[bisect_right(begins, at) - 1]]["DWARF CFI"]
            expected = _by_table(table, at, arch)
            assert found is not None, f"{path}: no rule at {at:#x}"
            if found["ra"] == "undef" or arch.sp in table[at]:
                # The outermost frame; or the rule of the stack pointer, which is the CFA for every consumer.
                yield 1
                continue
            for what, text in expected.items():
                assert text in (found[what], "?"), f"{path}: {what} at {at:#x}: {found[what]}, readelf has {text}"
            yield 1


def _by_table(table: Table, at: int, arch: Arch) -> Cells:
    """Return what the listing must show for a row of readelf; ``?`` where readelf shows less.

    readelf writes ``u`` for undefined and for unchanged, and ``exp`` for each expression, which can be a rule.
    """
    row = table[at]

    def text(register: int | str | None) -> str:
        cell = row.get(register, "u") if register is not None else "?"
        if cell in ("exp", "vexp", "u") or cell.startswith("v"):
            return "?"
        found = re.fullmatch(r"r(\d+)([+-]\d+)?", cell)
        if found is None:
            return cell
        offset = found[2] if found[2] and int(found[2]) else ""
        return arch.register_name(int(found[1])) + offset

    ra = arch.ra if arch.ra is not None else arch.pc
    return {"cfa": text("cfa"), "fp": text(arch.fp), "ra": "?" if arch.pac_mask else text(ra)}


def main() -> int:
    """Compare files; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    for path in parser.parse_args().files:
        with elf.opened(path) as binary:
            abi = binary.arch.name
        counts = compare(path, toolchain(abi, 3))
        print(f"{path}: {counts.sframe:,} rows of SFrame, {counts.dwarf:,} rows of DWARF CFI", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
