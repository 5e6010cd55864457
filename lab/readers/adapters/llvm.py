"""LLVM's ``llvm-readobj --sframe``: ``python -m lab.readers.adapters.llvm FOLDER``, where its package is unpacked.

It prints whole sections; the row for an address is looked up here.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from lab.readers.adapters.libsframe import REGISTERS, UNKNOWN
from lab.readers.notation import SAME, place, row
from lab.readers.protocol import RefusedError, Request, serve
from sframe_unwind.address import RangeMap
from tests.cli.sections import elf
from tests.hanging import HANG

_LIBRARIES, _LLVM = "usr/lib/x86_64-linux-gnu", "usr/lib/llvm-23"
_MACHINES = (1, 2, 3, 4)


def read(root: Path, request: Request) -> list[Any]:
    """Return the row for each address."""
    abi = request.section[4] if len(request.section) > 4 else 0
    with tempfile.TemporaryDirectory() as folder:
        machine = abi if abi in _MACHINES else 3
        path = elf(Path(folder, "file"), machine, request.section, address=request.address)
        libraries = f"{root / _LIBRARIES}:{root / _LLVM / 'lib'}"
        program = [str(root / _LLVM / "bin/llvm-readobj"), "--sframe", str(path)]
        command = [str(root / _LIBRARIES / "ld-linux-x86-64.so.2"), "--library-path", libraries, *program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    if done.returncode < 0:
        signal.signal(-done.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -done.returncode)
    functions = [_Function(text, abi) for text in done.stdout.split("FuncDescEntry [")[1:]]
    warning = re.search(r"(?:warning|error): (?:'[^']*': )?(.+)", done.stderr)
    if warning and not functions:
        raise RefusedError(warning[1])
    by_address = RangeMap((one.start, one.end, one) for one in functions)
    found = (by_address.get(pc) for pc in request.pcs)
    return [None if one is None else one.row(pc) for one, pc in zip(found, request.pcs)]


class _Function:
    """A function as it is printed."""

    def __init__(self, text: str, abi: int) -> None:
        self.start = _number(text, "PC")
        self.end = self.start + _number(text, "Size")
        self._is_mask = "PCMask" in text
        self._repetition = _number(text, "Repetitive block size") if self._is_mask else 0
        bases = REGISTERS.get(abi, UNKNOWN)
        self._rows = [
            (_number(part, "Start Address"), _row(part, bases)) for part in text.split("Frame Row Entry {")[1:]
        ]

    def row(self, pc: int) -> Any:
        if self._is_mask:
            if not self._repetition:
                return {"error": "repetition size 0"}
            pc = (pc - self.start) % self._repetition
        return next((found for start, found in reversed(self._rows) if start <= pc), None)


def _row(text: str, bases: tuple[int, int]) -> Any:
    offsets = [re.search(rf"{what} Offset: (-?\d+)", text) for what in ("CFA", "RA", "FP")]
    if offsets[0] is None:
        return {"error": "no CFA"}
    saved = [SAME if found is None else place(None, int(found[1]), True) for found in offsets[1:]]
    base = bases["Base Register: SP" in text]
    return row([place(base, int(offsets[0][1]), False), *saved], "Return Address Signed: Yes" in text)


def _number(text: str, what: str) -> int:
    found = re.search(rf"{what}: (0x[0-9A-Fa-f]+|\d+)", text)
    return int(found[1], 0) if found else 0


if __name__ == "__main__":
    serve(lambda request: read(Path(sys.argv[1]) / "root", request))
