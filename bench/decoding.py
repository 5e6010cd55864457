"""Measures decoding all SFrame data and all DWARF CFI of a program, compared with pyelftools decoding the CFI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from elftools.common.exceptions import DWARFError
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from bench import program
from bench.report import BenchError, Row, Target, Unavailable, medians, ratios
from bench.timing import alternate
from sframe_unwind import elf
from sframe_unwind.cfi.records import Records
from sframe_unwind.sframe.table import Function
from sframe_unwind.unwind_rule import UnwindRule

PART = "decode"
FASTER = Target(15, at_least=True)
CFI_FASTER = Target(10, at_least=True)
ROUNDS = 3
LIBRARIES = ("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6")


def rows() -> Iterator[Row]:
    """Measure from opening the file to the rules of all rows."""
    for version in (3, 2):
        try:
            yield _faster(version)
        except Unavailable as error:
            yield Row(part=PART, what=f"version {version}", values=(), unit="", target=FASTER, detail=str(error))
    try:
        yield _cfi_faster(program.build(3), f"CFI of {program.FUNCTIONS:,} functions")
    except Unavailable as error:
        yield Row(part=PART, what="CFI", values=(), unit="", target=CFI_FASTER, detail=str(error))
    library = next((Path(path) for path in LIBRARIES if Path(path).exists()), None)
    if library is None:
        yield Row(
            part=PART,
            what="CFI of a C library",
            values=(),
            unit="",
            target=CFI_FASTER,
            detail="none at " + ", ".join(LIBRARIES),
        )
    else:
        yield _cfi_faster(library, f"CFI of {library.name}")


def _cfi_faster(path: Path, what: str) -> Row:
    functions, counted = decode_cfi(path)
    times = alternate(ROUNDS, {"ours": lambda: decode_cfi(path), "pyelftools": lambda: decode_all_dwarf(path)})
    if decode_all_dwarf(path) != functions:
        raise BenchError(f"{path}: pyelftools does not find {functions} functions")
    return Row(
        part=PART,
        what=f"{what}, {counted:,} rows: pyelftools / ours",
        values=ratios(times["pyelftools"], times["ours"]),
        unit="x",
        target=CFI_FASTER,
        detail=medians("ms", **times),
    )


def decode_cfi(path: Path) -> tuple[int, int]:
    """Make the rows of each FDE in ``.eh_frame`` with our own decoder; return the numbers of FDEs and of rows."""
    with elf.opened(path) as binary:
        section = binary.named(".eh_frame")
        assert section is not None
        records = Records(binary.contents(section), section.address, binary.arch)
        decoded = [fde.decode() for _, fde in records.fdes(True, [])]
    return len(decoded), sum(len(function.rows) for function in decoded)


def _faster(version: int) -> Row:
    path = program.build(version)
    counted = sum(1 for section in elf.load(path) for function in section.functions() for _ in _rules(function))
    times = alternate(ROUNDS, {"sframe": lambda: decode_sframe(path), "pyelftools": lambda: decode_dwarf(path)})
    return Row(
        part=PART,
        what=f"version {version}: {program.FUNCTIONS:,} functions, {counted:,} rows: pyelftools / SFrame",
        values=ratios(times["pyelftools"], times["sframe"]),
        unit="x",
        target=FASTER,
        detail=medians("ms", **times),
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
    """Make the table of each FDE in ``.eh_frame`` with pyelftools, in a program of this benchmark."""
    _check(path, decode_all_dwarf(path))


def decode_all_dwarf(path: Path) -> int:
    """Make the table of each FDE in ``.eh_frame`` with pyelftools; return how many there are."""
    functions = 0
    with path.open("rb") as stream:
        for entry in ELFFile(stream).get_dwarf_info().EH_CFI_entries():
            if isinstance(entry, FDE):
                functions += 1
                # It has no case for DW_CFA_GNU_args_size, which libc.so.6 has once, and fails to format its message.
                with suppress(DWARFError, ValueError):
                    entry.get_decoded()
    return functions


def _rules(function: Function) -> list[UnwindRule]:
    return function.table.rows(function)[1]


def _check(path: Path, functions: int) -> None:
    if functions != program.FUNCTIONS:
        raise BenchError(f"{path}: {functions} functions, expected {program.FUNCTIONS}")
