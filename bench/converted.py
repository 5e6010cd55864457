"""Measures `bt` over a deep stack by DWARF CFI that is made from SFrame, against the compiler's CFI."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.backtraces import ROUNDS
from bench.debuggers import TIMEOUT, Gdb, all_gdbs
from bench.lldbs import Lldb, all_lldbs
from bench.report import BenchError, Row, Target, Unavailable, medians, ratios
from bench.sample import DEPTH_IN_DEBUGGERS, IN_DEBUGGERS, recursion
from sframe_unwind.convert.to_debug_frame import COPY, Wanted, convert_to_debug_frame

PART = "converted-bt"
AT_MOST = Target(1.1)
"""The time with converted CFI divided by the time with the compiler's; they are to be the same but for the noise."""


def rows() -> Iterator[Row]:
    """Measure without the plugin."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            native = recursion("O2")
            converted = _converted(native, Path(folder))
        except Unavailable as error:
            yield Row(part=PART, what="recursion O2", values=(), unit="", target=AT_MOST, detail=str(error))
            return
        debuggers: list[Gdb | Lldb] = [*all_gdbs(), *all_lldbs()]
        for debugger in debuggers:
            yield _of(debugger, native, converted)


def _of(debugger: Gdb | Lldb, native: Path, converted: Path) -> Row:
    times = {
        name: debugger.call(
            program, "backtraces_unaided", plugin=False, depth=DEPTH_IN_DEBUGGERS, rounds=ROUNDS, frames=IN_DEBUGGERS
        )
        for name, program in (("converted", converted), ("native", native))
    }
    what = f"{debugger.name}, recursion O2 without its .eh_frame: converted / native"
    return Row(
        part=PART,
        what=what,
        values=ratios(times["converted"], times["native"]),
        unit="x",
        target=AT_MOST,
        detail=medians("ms", **times),
    )


def _converted(program: Path, folder: Path) -> Path:
    """Return a copy whose SFrame is the only unwind data of the compiler's, with DWARF CFI made from it."""
    bare, converted = folder / "bare", folder / "converted"
    removed = ("--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr")
    subprocess.run(["objcopy", *removed, program, bare], timeout=TIMEOUT, check=True)
    if not convert_to_debug_frame(bare, converted, Wanted(COPY)).is_whole:
        raise BenchError(f"{program}: not all functions of its SFrame became DWARF CFI")
    return converted
