"""Small reads at close addresses are combined into few large ones."""

from __future__ import annotations

import pytest

from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ChunkCache

MEMORY = bytes(range(256)) * 16
START = 0x1200
"""An address within a chunk whose beginning cannot be read."""


class Counted:
    """Memory that counts how often it is read."""

    def __init__(self) -> None:
        self.reads: list[tuple[int, int]] = []

    def __call__(self, address: int, size: int) -> bytes:
        self.reads.append((address, size))
        offset = address - START
        if offset < 0 or offset + size > len(MEMORY):
            raise MemoryReadError(address, size)
        return MEMORY[offset : offset + size]


def test_neighbours_are_read_together() -> None:
    memory = Counted()
    read = ChunkCache(memory).read
    for address in (0x1408, 0x17F8, 0x1400, 0x1500):
        assert read(address, 8) == MEMORY[address - START : address - START + 8]
    assert memory.reads == [(0x1400, 0x400)]


def test_across_chunks_and_at_the_edge_of_what_is_readable() -> None:
    memory = Counted()
    read = ChunkCache(memory).read
    assert read(0x17FC, 8) == MEMORY[0x5FC:0x604]
    assert read(0x1240, 16) == MEMORY[0x40:0x50]
    with pytest.raises(MemoryReadError, match="0x11f8"):
        read(0x11F8, 8)
