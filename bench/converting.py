"""Measures `convert` on the C library, proof and copy included, against pyelftools decoding the library's CFI."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.decoding import LIBRARIES, decode_all_dwarf
from bench.report import BenchError, Row, Target, medians, ratios
from bench.timing import alternate
from sframe_unwind.convert.to_sframe import Wanted, convert_to_sframe

PART = "convert"
SLOWER = Target(3)
"""The ratio of the times."""
ROUNDS = 3


def rows() -> Iterator[Row]:
    """Measure from opening the file to the copy that has its name."""
    library = next((Path(path) for path in LIBRARIES if Path(path).exists()), None)
    if library is None:
        yield Row(
            part=PART, what="a C library", values=(), unit="", target=SLOWER, detail="none at " + ", ".join(LIBRARIES)
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        times = alternate(
            ROUNDS,
            {
                "convert": lambda: _convert(library, Path(folder, library.name)),
                "pyelftools": lambda: decode_all_dwarf(library),
            },
        )
    slower = ratios(times["convert"], times["pyelftools"])
    yield Row(
        part=PART,
        what=f"{library.name} to version 3: convert / pyelftools",
        values=slower,
        unit="x",
        target=SLOWER,
        detail=medians("s", **times),
    )


def _convert(library: Path, copy: Path) -> None:
    report = convert_to_sframe(library, copy, Wanted(source="dwarf"))
    if not report.is_whole:
        raise BenchError(f"{library}: {len(report.losses)} functions were left out, expected none")
