"""Reads the assembler's tables of opcodes from the sources of GNU binutils, as Debian packages them."""

from __future__ import annotations

import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Callable, NamedTuple

from lab.code.opcodes.amd64 import candidate
from tests.hanging import HANG
from tools.binutils import SUITES
from tools.debian import download

_FILES = {
    "amd64": ("i386-tbl.h",),
    "aarch64": ("aarch64-tbl.h",),
    "s390x": ("s390-opc.txt", "s390-opc.c"),
}
_PACKAGE, _ARCHIVES = "binutils-source", "usr/src/binutils"
_AMD64 = re.compile(r"^  \{ MN_(\w+), 0x([0-9a-f]+)(?:\|\d)?, \d, SPACE_(\w+), (None|[0-9]\w*),", re.MULTILINE)
_AARCH64 = re.compile(r"^\s*\w*INSNC?\s*\(\s*\"([^\"]+)\",\s*(0x[0-9a-f]+),\s*(0x[0-9a-f]+)", re.MULTILINE)
_S390X = re.compile(r"^([0-9a-f]+) (\S+) (\w+) \"", re.MULTILINE)
_MASK = re.compile(r"^#define MASK_(\w+)\s*\{([^}]*)\}", re.MULTILINE)


class Opcode(NamedTuple):
    """An opcode of an assembler's table."""

    mnemonic: str
    """The mnemonic in the table; on s390x without the placeholder of a condition."""
    name: str
    """What distinguishes it from other opcodes with the mnemonic."""
    candidate: Callable[[Random], bytes]
    """Returns bytes that may encode it, with random operands."""

    def is_named(self, words: frozenset[str]) -> bool:
        """Return whether the words of an instruction have the mnemonic, perhaps with a condition or a size."""
        return any(word.startswith(self.mnemonic) for word in words)


def fetched(folder: Path) -> str:
    """Fetch the tables into a folder; return the version of the package.

    :raises FetchError: the release does not have the package.
    """
    (package,) = download(SUITES["2.47"][-1], "amd64", lambda _: [_PACKAGE], folder)
    subprocess.run(["dpkg-deb", "--extract", str(package), str(folder / "package")], check=True, timeout=HANG)
    (archive,) = (folder / "package" / _ARCHIVES).glob("*.tar.*")
    wanted = {name for names in _FILES.values() for name in names}
    with tarfile.open(archive) as opened:
        for member in opened:
            name = Path(member.name)
            content = opened.extractfile(member) if name.parent.name == "opcodes" and name.name in wanted else None
            if content is not None:
                (folder / name.name).write_bytes(content.read())
    return package.name.split("_")[1]


def opcodes(machine: str, folder: Path) -> list[Opcode]:
    """Return the distinct opcodes of a machine, given the folder with the tables."""
    texts = [(folder / name).read_text() for name in _FILES[machine]]
    parsers: dict[str, Callable[..., Iterator[Opcode]]] = {"amd64": _amd64, "aarch64": _aarch64, "s390x": _s390x}
    found = parsers[machine](*texts)
    return list({(opcode.mnemonic, opcode.name): opcode for opcode in found}.values())


def _amd64(table: str) -> Iterator[Opcode]:
    for mnemonic, digits, space, extension in _AMD64.findall(table):
        opcode = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
        made = candidate(opcode, space, None if extension == "None" else int(extension, 0))
        yield Opcode(mnemonic, f"{space} {digits} {extension}", made)


def _aarch64(table: str) -> Iterator[Opcode]:
    for mnemonic, digits, mask in _AARCH64.findall(table):
        fixed, bits = (int(one, 16).to_bytes(4, "little") for one in (digits, mask))
        yield Opcode(mnemonic, f"{digits} of {mask}", _filled(fixed, bits))


def _s390x(table: str, code: str) -> Iterator[Opcode]:
    masks = {name: bytes(int(byte, 16) for byte in values.split(",")) for name, values in _MASK.findall(code)}
    for digits, mnemonic, kind in _S390X.findall(table):
        fixed = bytes.fromhex(digits).ljust(6, b"\0")
        size = (2, 4, 4, 6)[fixed[0] >> 6]
        made = _filled(fixed[:size], masks[kind][:size])
        yield Opcode(re.split(r"[*$]", mnemonic)[0], f"{digits} {kind}", made)


def _filled(fixed: bytes, mask: bytes) -> Callable[[Random], bytes]:
    """Return a function that makes an instruction from a fixed part and random bits."""

    def made(random_: Random) -> bytes:
        return bytes(one & bits | random_.getrandbits(8) & ~bits & 0xFF for one, bits in zip(fixed, mask))

    return made
