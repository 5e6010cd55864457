"""Disagreements that are errors of a producer, with the proof from the instructions.

A disagreement is explained only if it is one of the kinds below *and* the program itself shows that SFrame is wrong
there and DWARF is right.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from sframe_unwind import elf
from sframe_unwind.verify.verdict import Disagreement
from tests.hanging import HANG

TIMEOUT = HANG
"""Seconds that one run of objdump may take."""


class Known(NamedTuple):
    """A kind of disagreement."""

    abis: tuple[str, ...]
    versions: tuple[int, ...]
    section: str
    what: str
    reason: str


AMD64, ALL = ("amd64",), ("amd64", "aarch64", "aarch64_be", "s390x")

KNOWN = (
    Known(AMD64, (2, 3), ".plt.got", "cfa", "GNU ld 2.44 to 2.47: a push is claimed that the stub does not have"),
    Known(AMD64, (1,), ".plt.sec", "cfa", "GNU ld 2.40 gives .plt.sec the rows of .plt: pushes that it does not have"),
    Known(AMD64, (1,), ".plt", "cfa", "GNU ld 2.40: with endbr64, the row after the push begins two bytes late"),
    Known(ALL, (1, 2), ".text", "ra", "GNU as before 2.46 passes over .cfi_undefined: the entry point has no caller"),
)


def explained(tools: Path, path: Path, abi: str, version: int, found: Disagreement) -> str:
    """Return why a disagreement is not an error of this project; empty if that cannot be shown."""
    for known in KNOWN:
        if abi in known.abis and version in known.versions:
            if (found.spot.section, found.what) != (known.section, known.what):
                continue
            shown = _is_outermost(path, found) if found.what == "ra" else _pushes_less(tools, path, found)
            if shown:
                return known.reason
    return ""


def _is_outermost(path: Path, found: Disagreement) -> bool:
    """Return whether this is the entry point: the kernel starts a program there, and nothing has called it."""
    with elf.opened(path) as binary:
        return found.dwarf == "undefined" and found.spot.address == binary.entry_point


def _pushes_less(tools: Path, path: Path, found: Disagreement) -> bool:
    """Return whether the CFA of DWARF fits the pushes (rsp + 8, and 8 for each push before), and SFrame's does not."""
    pushes = 0
    for address, instruction in _instructions(tools, path, found.spot.section):
        if address >= found.spot.address:
            break
        if instruction.startswith("push"):
            pushes += 1
        elif re.match(r"(bnd )?jmp|xchg|nop", instruction):  # the stub's end, and what fills up
            pushes = 0
    return found.dwarf == f"rsp + {8 + 8 * pushes}" != found.sframe


def _instructions(tools: Path, path: Path, section: str) -> list[tuple[int, str]]:
    command = [str(tools / "objdump"), "--disassemble", "--no-show-raw-insn", f"--section={section}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    lines = re.findall(r"^ +([0-9a-f]+):\s+(.*)$", done.stdout, re.MULTILINE)
    return [(int(address, 16), instruction) for address, instruction in lines]
