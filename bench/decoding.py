"""Measures decoding all SFrame data of a program, compared with pyelftools decoding all its DWARF unwind data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from elftools.dwarf.callframe import FDE

from bench import program
from bench.report import BenchError, Row, Target, Unavailable, medians, ratios
from bench.timing import alternate
from sframe_unwind import elf
from sframe_unwind.sframe.table import Function
from sframe_unwind.unwind_rule import UnwindRule

PART = "decode"
FASTER = Target(15, at_least=True)
ROUNDS = 3


def rows() -> Iterator[Row]:
    """Measure from opening the file to the rules of all rows."""
    for version in (3, 2):
        try:
            yield _faster(version)
        except Unavailable as error:
            yield Row(PART, f"version {version}", (), "", FASTER, str(error))


def _faster(version: int) -> Row:
    path = program.build(version)
    counted = sum(1 for section in elf.load(path) for function in section.functions() for _ in _rules(function))
    times = alternate(ROUNDS, {"sframe": lambda: decode_sframe(path), "pyelftools": lambda: decode_dwarf(path)})
    return Row(
        PART,
        f"version {version}: {program.FUNCTIONS:,} functions, {counted:,} rows: pyelftools / SFrame",
        ratios(times["pyelftools"], times["sframe"]),
        "x",
        FASTER,
        medians("ms", **times),
    )


def decode_sframe(path: Path) -> None:
    """Decode each row of each function to a rule."""
    functions = 0
    for section in elf.load(path, lazy=False):
        for function in section.functions():
            _rules(function)
            functions += 1
    _check(path, functions)


def decode_dwarf(path: Path) -> None:
    """Decode the table of each FDE in ``.eh_frame``."""
    functions = 0
    with elf.opened(path) as file:
        for entry in file.get_dwarf_info().EH_CFI_entries():
            if isinstance(entry, FDE):
                entry.get_decoded()
                functions += 1
    _check(path, functions)


def _rules(function: Function) -> list[UnwindRule]:
    return function.table.rows(function)[1]


def _check(path: Path, functions: int) -> None:
    if functions != program.FUNCTIONS:
        raise BenchError(f"{path}: {functions} functions, expected {program.FUNCTIONS}")
