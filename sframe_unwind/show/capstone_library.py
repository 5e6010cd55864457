"""Disassembles by capstone: reads the instructions of a range of code from the library as one block of memory.

The package ``capstone`` makes a Python object of each instruction, and its import takes a tenth of a second.  So its
library is loaded without it, where the layout of the library's structure is known: ``cs_insn`` of capstone 5
(``capstone.h``), from which two known instructions must be read as expected.  Elsewhere, the package itself
disassembles.
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from struct import Struct
from typing import Any, Protocol

from sframe_unwind.named_tuple import NamedTuple

_VERSION = 5
"""The version of capstone whose constants and structure are known here."""
_CONSTANTS = {
    "CS_ARCH_ARM64": 1,
    "CS_ARCH_X86": 3,
    "CS_ARCH_SYSZ": 6,
    "CS_MODE_ARM": 0,
    "CS_MODE_64": 1 << 3,
    "CS_MODE_BIG_ENDIAN": 1 << 31,
}
_OPT_SYNTAX, _OPT_SKIPDATA, _SYNTAX_ATT, _ON = 1, 5, 2, 3
_MNEMONIC, _OPERANDS = 32, 160
"""Sizes in bytes of the texts in ``cs_insn``."""
_NO_OPERANDS = bytes(_OPERANDS)


Record = tuple[int, int, bytes]
"""An instruction: its address, its size in bytes, and its texts, which :func:`split` divides.

The texts are the mnemonic, and the operands with zero bytes up to :data:`_OPERANDS` bytes.
"""


class _Probe(NamedTuple):
    """Two instructions of a machine, by which the layout of the structure is checked."""

    code: bytes
    records: list[Record]
    """The instructions, as the library gives them."""
    address: int


def _probe(code: str, *instructions: tuple[int, str, str]) -> _Probe:
    """Return the probe of a machine.

    :param code: the bytes of its instructions.
    :param instructions: size in bytes, mnemonic and operands of each.
    """
    address = start = 0x1234_5678_9AB0  # each of its bytes is another one
    records: list[Record] = []
    for size, mnemonic, operands in instructions:
        records.append((address, size, mnemonic.encode() + operands.encode().ljust(_OPERANDS, b"\0")))
        address += size
    return _Probe(bytes.fromhex(code), records, start)


_PROBES = {
    "CS_ARCH_ARM64": _probe("e00700f9 c0035fd6", (4, "str", "x0, [sp, #8]"), (4, "ret", "")),
    "CS_ARCH_X86": _probe("488b442410 c3", (5, "movq", "0x10(%rsp), %rax"), (1, "retq", "")),
    "CS_ARCH_SYSZ": _probe("e320f0080004 07fe", (6, "lg", "%r2, 8(%r15)"), (2, "br", "%r14")),
}
"""By the names of capstone's constants.  That of AMD64 is written in AT&T's syntax."""


def split(texts: bytes) -> tuple[str, str]:
    """Return mnemonic and operands."""
    return texts[:-_OPERANDS].decode("ascii"), texts[-_OPERANDS:].partition(b"\0")[0].decode("ascii")


class Decoder(Protocol):
    """Disassembles the code of a machine; bytes that are no instruction become ``.byte``."""

    def records(self, code: bytes, address: int) -> list[Record]:
        """Return the instructions of a range of code that begins at an address."""


def decoder(architecture: str, mode: str, att_syntax: bool) -> Decoder | None:
    """Return what disassembles the code of a machine; ``None``: capstone is not installed.

    :param architecture: name of capstone's constant, as ``CS_ARCH_X86``.
    :param mode: name of capstone's constant, as ``CS_MODE_64``.
    :param att_syntax: write instructions in AT&T's syntax.
    """
    library = _library()
    if library is not None:
        found = _Library(library, _CONSTANTS[architecture], _CONSTANTS[mode], att_syntax)
        probe = _PROBES[architecture]
        if found.records(probe.code, probe.address) == probe.records:
            return found
    try:
        return _Package(architecture, mode, att_syntax)
    except ImportError:
        return None


class _Instruction(ctypes.Structure):
    """The structure ``cs_insn``."""

    _fields_ = (
        ("id", ctypes.c_uint),
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint16),
        ("bytes", ctypes.c_ubyte * 24),
        ("mnemonic", ctypes.c_char * _MNEMONIC),
        ("op_str", ctypes.c_char * _OPERANDS),
        ("detail", ctypes.c_void_p),
    )


def _fields_read() -> Struct:
    """Return the layout of the structure with the fields alone that a :data:`Record` is made of."""
    layout, end = "=", 0
    kinds = {"address": "Q", "size": "H", "mnemonic": f"{_MNEMONIC}s", "op_str": f"{_OPERANDS}s"}
    for name, kind in kinds.items():
        offset, size = getattr(_Instruction, name).offset, getattr(_Instruction, name).size
        layout += f"{offset - end}x{kind}"
        end = offset + size
    return Struct(f"{layout}{ctypes.sizeof(_Instruction) - end}x")


_SIZE = ctypes.sizeof(_Instruction)
_RECORDS = _fields_read().iter_unpack


def _library() -> Any:
    """Return the library that the package brings; ``None``: it brings none, or one of an unknown version."""
    if sys.modules.get("capstone", ...) is None or "LIBCAPSTONE_PATH" in os.environ:  # the user chose another one
        return None
    spec = find_spec("capstone")
    paths = [Path(folder, "lib", "libcapstone.so") for folder in (spec and spec.submodule_search_locations) or ()]
    for path in filter(Path.exists, paths):
        try:
            found = ctypes.CDLL(str(path))
        except OSError:
            return None
        major, minor = ctypes.c_int(), ctypes.c_int()
        found.cs_version(ctypes.byref(major), ctypes.byref(minor))
        return found if major.value == _VERSION else None
    return None


class _Library:
    """Calls the library."""

    def __init__(self, library: Any, architecture: int, mode: int, att_syntax: bool) -> None:
        size, pointer = ctypes.c_size_t, ctypes.POINTER
        library.cs_open.argtypes = (ctypes.c_uint, ctypes.c_uint, pointer(size))
        library.cs_close.argtypes = (pointer(size),)
        library.cs_option.argtypes = (size, ctypes.c_int, size)
        library.cs_disasm.argtypes = (size, ctypes.c_char_p, size, ctypes.c_uint64, size, pointer(ctypes.c_void_p))
        library.cs_disasm.restype = size
        library.cs_free.argtypes = (ctypes.c_void_p, size)
        library.cs_free.restype = None
        self._library = library
        self._handle = size()
        status = library.cs_open(architecture, mode, ctypes.byref(self._handle))
        if status:
            raise MemoryError(f"capstone: cs_open fails with error {status}")
        library.cs_option(self._handle, _OPT_SKIPDATA, _ON)
        if att_syntax:
            library.cs_option(self._handle, _OPT_SYNTAX, _SYNTAX_ATT)

    def __del__(self) -> None:
        self._library.cs_close(ctypes.byref(self._handle))

    def records(self, code: bytes, address: int) -> list[Record]:
        """Return the instructions of a range of code that begins at an address."""
        block = ctypes.c_void_p()
        count = self._library.cs_disasm(self._handle, code, len(code), address, 0, ctypes.byref(block))
        if not count or block.value is None:
            return []
        try:
            # The library fills operands up with zeros, if there are any; other bytes after a text are what was in the
            # memory before, by which equal instructions would have different texts.
            return [
                (at, size, mnemonic.partition(b"\0")[0] + (operands if operands[0] else _NO_OPERANDS))
                for at, size, mnemonic, operands in _RECORDS(
                    (ctypes.c_char * (_SIZE * count)).from_address(block.value)
                )
            ]
        finally:
            self._library.cs_free(block, count)


class _Package:
    """Calls the package.

    :raises ImportError: it is not installed.
    """

    def __init__(self, architecture: str, mode: str, att_syntax: bool) -> None:
        import capstone

        self._decoder: Any = capstone.Cs(getattr(capstone, architecture), getattr(capstone, mode))
        self._decoder.skipdata = True
        if att_syntax:
            self._decoder.syntax = capstone.CS_OPT_SYNTAX_ATT

    def records(self, code: bytes, address: int) -> list[Record]:
        """Return the instructions of a range of code that begins at an address."""
        return [
            (at, size, mnemonic.encode() + operands.encode().ljust(_OPERANDS, b"\0"))
            for at, size, mnemonic, operands in self._decoder.disasm_lite(code, address)
        ]
