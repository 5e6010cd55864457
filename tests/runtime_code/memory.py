"""The memory of a process with libunwind's structures in it, written from the declarations in its header."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sframe_unwind.arch import BY_NAME
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.runtime_code.source import RunTimeCode
from sframe_unwind.unwind.modules import Modules

BASE = 0x10000
CODE = 0x500000
HEAD = BASE
SIZE = 64
"""Size of each procedure in bytes; each one starts where the one before it ends."""


class Memory:
    """Memory to lay out structures in; the list's head is at :data:`HEAD`."""

    def __init__(self, abi: str = "amd64") -> None:
        self.abi = BY_NAME[abi]
        self._mark = "<" if self.abi.byteorder == "little" else ">"
        self._bytes = bytearray(1 << 16)
        self._used = 0
        self.entries: list[int] = []
        self.reads = 0
        self.place(16)

    def place(self, size: int) -> int:
        """Return the address of fresh room."""
        address = BASE + self._used
        self._used += size
        return address

    def put(self, address: int, layout: str, *values: int) -> None:
        """Write numbers, in the byte order of the ABI."""
        struct.pack_into(self._mark + layout, self._bytes, address - BASE, *values)

    def get(self, address: int, layout: str) -> int:
        """Read a number."""
        return int(struct.unpack_from(self._mark + layout, self._bytes, address - BASE)[0])

    def read(self, address: int, size: int) -> bytes:
        """Read bytes; the tests give this function to the core."""
        self.reads += 1
        if not BASE <= address <= BASE + len(self._bytes) - size:
            raise MemoryReadError(address, size)
        return bytes(self._bytes[address - BASE : address - BASE + size])

    def string(self, text: str) -> int:
        """Write a string; return its address."""
        raw = text.encode() + b"\0"
        address = self.place(len(raw) + -len(raw) % 8)
        self._bytes[address - BASE : address - BASE + len(raw)] = raw
        return address

    def region(self, insn_count: int, *directives: tuple[int, int, int, int], following: int = 0) -> int:
        """Write a region, ``unw_dyn_region_info_t``; return its address.  A directive is tag, reg, when and val."""
        address = self.place(16 + 16 * len(directives))
        self.put(address, "QiI", following, insn_count, len(directives))
        for at, (tag, reg, when, val) in enumerate(directives):
            self.put(address + 16 + 16 * at, "bbhiq", tag, 0, reg, when, val)
        return address

    def entry(self, regions: int, name: str = "", kind: int = 0) -> int:
        """Register one more procedure, an ``unw_dyn_info_t`` at the front of the list; return the start of its code."""
        start = CODE + SIZE * len(self.entries)
        address = self.place(88)
        named = self.string(name) if name else 0
        self.put(address, "QQQQQiiQ", 0, 0, start, start + SIZE, 0, kind, 0, 0)
        self.put(address + 56, "QQIiQ", named, 0, 0, 0, regions)
        self.entries.append(address)
        self.link(list(reversed(self.entries)))
        return start

    def link(self, entries: Sequence[int]) -> None:
        """Make the list of these entries, and a generation that fits."""
        for before, address, after in zip((0, *entries), entries, (*entries[1:], 0)):
            self.put(address, "QQ", after, before)
        self.put(HEAD, "IIQ", 0, self.get(HEAD + 4, "I") + 1, entries[0] if entries else 0)


def source(memory: Memory, lines: list[str]) -> RunTimeCode:
    """Return the reader of the list."""
    symbols = {"_U_dyn_info_list": [HEAD]}
    return RunTimeCode(memory.abi, memory.read, lambda name: symbols.get(name, []), lines.append)


def modules(memory: Memory, lines: list[str]) -> Modules:
    """Return the modules of a process that has only run-time code."""
    return Modules(memory.abi, [], lines.append, run_time=source(memory, lines))
