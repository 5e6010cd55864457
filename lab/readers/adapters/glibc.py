"""The reader of glibc, compiled alone: ``python -m lab.readers.adapters.glibc PROGRAM``, made from ``glibc.c``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

from lab.readers.adapters.libsframe import REGISTERS, UNKNOWN
from lab.readers.notation import SAME, place, row
from lab.readers.protocol import RefusedError, Request, serve
from tests.hanging import HANG

_REFUSED = 3


def read(program: str, request: Request) -> list[Any]:
    """Return the row for each address."""
    command = [program, hex(request.address), *map(hex, request.pcs)]
    done = subprocess.run(command, input=request.section, capture_output=True, timeout=HANG, check=False)
    if done.returncode < 0:  # this process ends as the reader did
        signal.signal(-done.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -done.returncode)
    if done.returncode == _REFUSED:
        raise RefusedError("no usable SFrame")
    lines = done.stdout.decode().splitlines()
    if done.returncode or len(lines) != len(request.pcs):
        raise OSError(f"{program}: exit status {done.returncode}, {len(lines)} answers")
    return [_row(request.section[4], line.split()) for line in lines]


def _row(abi: int, fields: list[str]) -> Any:
    if fields == ["-"]:
        return None
    base, cfa, *saved = fields
    if cfa == "x":
        return {"error": "no CFA"}
    places = [SAME if offset == "x" else place(None, int(offset), True) for offset in saved]
    return row([place(REGISTERS.get(abi, UNKNOWN)[int(base)], int(cfa), False), *places])


if __name__ == "__main__":
    serve(lambda request: read(sys.argv[1], request))
