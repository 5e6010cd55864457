"""The instructions to execute: those of real libraries, and random encodings of every kind that capstone knows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sframe_unwind import elf
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.elf.constants import SHF_EXECINSTR, SHT_PROGBITS
from tests.missing import absent

LIBRARIES = {
    "amd64": (Path("/usr/lib/x86_64-linux-gnu"), Path("/lib/x86_64-linux-gnu")),
    "aarch64": (Path("/usr/aarch64-linux-gnu/lib"),),
    "s390x": (Path("/usr/s390x-linux-gnu/lib"),),
}
_MOST_BYTES = 1 << 22
_PREFIXES = (b"", b"\x48", b"\x66", b"\xf3", b"\xf2", b"\x49", b"\x4c", b"\x41", b"\xf3\x48", b"\xf2\x48", b"\x66\x48")
_VEX = (b"\xc5", b"\xc4", b"\x62")


def libraries(machine: str, folders: Sequence[Path] = ()) -> list[Path]:
    """Return the libraries of a machine in some folders, by default the installed ones, the smallest first."""
    found = {
        path.resolve()
        for folder in folders or LIBRARIES[machine]
        for path in folder.glob("*.so*")
        if path.is_file() and _is_elf(path)
    }
    return sorted(found, key=lambda path: (path.stat().st_size, path))


def small_library(machine: str) -> Path:
    """Return libgcc_s of a machine; skip the test without it."""
    path = next((path for path in libraries(machine) if path.name == "libgcc_s.so.1"), None)
    if path is None:
        absent(f"libgcc_s.so.1 of {machine} is not installed: the code of a whole file stays untested")
    return path


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def spread(paths: Sequence[Path], count: int) -> list[Path]:
    """Return some of the paths, evenly chosen, including the last one."""
    return [paths[-1 - number * len(paths) // count] for number in reversed(range(min(count, len(paths))))]


def of_file(path: Path, lifter: Lifter, seen: set[bytes]) -> Iterator[bytes]:
    """Yield the new instructions of the functions of a file that CFI describes."""
    with elf.opened(path) as binary:
        sections = [
            (section.address, binary.contents(section))
            for section in binary.sections
            if section.flags & SHF_EXECINSTR and section.type == SHT_PROGBITS
        ]
        for start, end in binary.cfi.ranges():
            for address, data in sections:
                if address <= start and end <= address + len(data):
                    at, stop = start - address, end - address
                    while at < stop:
                        size = lifter.instruction(data, at).size
                        raw = data[at : at + size]
                        if size and raw not in seen:
                            seen.add(raw)
                            yield raw
                        at += size or lifter.machine.sizes(data, at)[0]


def generated(machine: Machine, random_: random.Random) -> Iterator[bytes]:
    """Yield encodings without end: bytes that capstone disassembles, with mnemonics of similar frequency."""
    import capstone

    decoder: Any = capstone.Cs(*(getattr(capstone, name) for name in machine.disassembler))
    seen: Counter[str] = Counter()
    rounds = 0
    while True:
        rounds += 1
        raw = _random_bytes(machine, random_)
        found = next(decoder.disasm(raw, 0, 1), None)
        # A mnemonic is repeated after the others had their turn.
        if found is not None and seen[found.mnemonic] <= rounds // 4000:
            seen[found.mnemonic] += 1
            yield bytes(found.bytes)


def _random_bytes(machine: Machine, random_: random.Random) -> bytes:
    if machine.max_size != 15:
        return random_.randbytes(machine.max_size)
    if random_.random() < 0.4:
        return random_.choice(_VEX) + random_.randbytes(14)
    escape = random_.choice((b"", b"\x0f", b"\x0f", b"\x0f\x38", b"\x0f\x3a"))
    return (random_.choice(_PREFIXES) + escape + random_.randbytes(14))[:15]
