"""Makes bytes that may encode an opcode of AMD64, with random prefixes and operands."""

from __future__ import annotations

from random import Random
from typing import Callable

_LEGACY = {"BASE": b"", "0F": b"\x0f", "0F38": b"\x0f\x38", "0F3A": b"\x0f\x3a"}
_MAPS = {"0F": 1, "0F38": 2, "0F3A": 3, "MAP4": 4, "MAP5": 5, "MAP6": 6, "MAP7": 7, "XOP08": 8, "XOP09": 9, "XOP0A": 10}
_PREFIXES = (b"", b"\x66", b"\xf3", b"\xf2")
_WAIT = 0x9B
"""An instruction that objdump takes for a prefix of the next one."""
_TAIL = 12
"""Number of random bytes after the ModRM byte: more than a SIB byte, a displacement and an immediate."""


def candidate(opcode: bytes, space: str, extension: int | None) -> Callable[[Random], bytes]:
    """Return a function that makes bytes that may encode an opcode; the disassembler decides whether they do.

    :param opcode: its last bytes may be a fixed ModRM byte or immediate.
    :param space: the map of opcodes, as the assembler's table names it.
    :param extension: bits 3 to 5 of the ModRM byte; ``None``: they are an operand, or there is no such byte.
    """

    def made(random_: Random) -> bytes:
        code = opcode
        if code[0] | 7 != _WAIT | 7 and random_.random() < 0.5:  # a size, a direction or a register in the lowest bits
            code = bytes((code[0] | random_.randrange(8), *code[1:])) if len(code) == 1 else code
        if space == "MAP4":
            code = code[:1]  # the other digits are a condition, which EVEX has
        return (_start(space, random_) + code + _operands(extension, random_))[:15]

    return made


def _operands(extension: int | None, random_: Random) -> bytes:
    """Return a ModRM byte and what follows it: mostly a register, or memory near one."""
    mode = random_.choice((0x40, 0x40, 0xC0, 0xC0, 0x00, 0x80))
    field = random_.randrange(8) if extension is None else extension & 7
    tail = random_.randbytes(_TAIL)
    if random_.random() < 0.5:  # small constants distinguish pseudo instructions
        tail = bytes(byte & 0x1F for byte in tail)
    return bytes((mode | field << 3 | random_.randrange(8),)) + tail


def _start(space: str, random_: Random) -> bytes:
    """Return the prefixes of an opcode in a map."""
    ways = [_evex] if space == "MAP4" else [_xop] if space.startswith("XOP") else [_evex, _vex]
    if space in _LEGACY:
        ways = [_legacy] if space == "BASE" else [*ways, _legacy, _legacy]
    return random_.choice(ways)(space, random_)


def _legacy(space: str, random_: Random) -> bytes:
    rex = bytes((0x40 | random_.randrange(16),)) if random_.random() < 0.5 else b""
    if space in ("BASE", "0F") and random_.random() < 0.1:
        return b"\xd5" + bytes((random_.randrange(128) | 128 * (space == "0F"),))  # REX2
    return random_.choice(_PREFIXES) + rex + _LEGACY[space]


def _vex(space: str, random_: Random) -> bytes:
    return bytes(
        (0xC4, 0xE0 & random_.getrandbits(8) | _MAPS[space], random_.getrandbits(8) | 0x78 * random_.randrange(2))
    )


def _xop(space: str, random_: Random) -> bytes:
    return b"\x8f" + _vex(space, random_)[1:]


def _evex(space: str, random_: Random) -> bytes:
    masked = random_.choice((0, 0, random_.randrange(8)))
    return bytes(
        (
            0x62,
            0xF0 & (random_.getrandbits(8) | 0x90) | _MAPS[space],
            random_.getrandbits(8) | 4 | 0x78 * random_.randrange(2),
            random_.choice((0x08, 0x28, 0x48, random_.getrandbits(8) & 0xF8)) | masked,
        )
    )
