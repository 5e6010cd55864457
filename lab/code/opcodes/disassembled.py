"""Disassembles many candidates by objdump at once."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.hanging import HANG
from tools.binutils import provide

_LINE = re.compile(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2,8} )+) *\t(\S.*)$", re.MULTILINE)
_NOTHING = re.compile(
    r"\(bad\)|\.(inst|long|short|word|byte|insn)\b|^(rex|data16|addr32|lock|rep|repz|repnz|[c-gs]s)\S*$"
)
"""No instruction, or a prefix alone."""
_WORDS = 4


class _Machine(NamedTuple):
    """How objdump disassembles a machine's code."""

    target: str
    option: str
    room: int
    """Number of bytes for each candidate, with what follows it: decoding begins anew in the next one."""
    filler: bytes
    """What follows a candidate.  objdump leaves out zeros, which would be one more instruction for two of them."""
    flavours: tuple[tuple[str, ...], ...]
    """Options for each notation."""


_MACHINES = {
    "amd64": _Machine("x86_64", "i386:x86-64", 48, b"\0", (("-M", "intel"), ("-M", "att"))),
    "aarch64": _Machine("aarch64", "aarch64", 4, b"\0", (("-M", "aliases"), ("-M", "no-aliases"))),
    "s390x": _Machine("s390x", "s390:64-bit", 16, b"\x07", ((),)),
}


class Decoded(NamedTuple):
    """An instruction by objdump."""

    raw: bytes
    words: frozenset[str]
    """Its first words in each notation: prefixes, and the mnemonic."""


def disassembled(machine: str, candidates: Sequence[bytes]) -> list[Decoded | None]:
    """Return the instruction at the start of each candidate; ``None``: there is none."""
    made = _MACHINES[machine]
    code = b"".join(one + made.filler * (made.room - len(one)) for one in candidates)
    found: list[Decoded | None] = [None] * len(candidates)
    if not candidates:
        return found
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "code"
        path.write_bytes(code)
        for options in made.flavours:
            for at, size, words in _lines(made, path, options):
                number = at // made.room
                known = found[number]
                if not at % made.room:
                    found[number] = Decoded(code[at : at + size], words if known is None else known.words | words)
    return found


def _lines(made: _Machine, path: Path, options: Sequence[str]) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield the address, the size and the words of each instruction in a file of code."""
    command = [str(provide("2.47", made.target) / "objdump"), "-D", "-b", "binary", "-m", made.option, *options]
    done = subprocess.run(
        [*command, "--insn-width=16", str(path)], capture_output=True, text=True, check=True, timeout=HANG
    )
    for at, raw, text in _LINE.findall(done.stdout):
        if not _NOTHING.search(text):
            yield int(at, 16), len(raw.replace(" ", "")) // 2, frozenset(text.split()[:_WORDS])
