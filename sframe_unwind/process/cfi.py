"""The DWARF CFI of one loaded object, asked for single addresses."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from typing import Callable, NamedTuple

from elftools.dwarf.callframe import FDE

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.dwarf.cfi import CfiFunction, decode
from sframe_unwind.dwarf.fde_reader import FdeReader
from sframe_unwind.image.eh_frame import EhFrame, SectionData
from sframe_unwind.image.elf_image import Image
from sframe_unwind.memory import STRUCT_MARKS, ReadMemory, lazy_memory
from sframe_unwind.unwind_rule import UnwindRule

_PT_LOAD, _PT_GNU_EH_FRAME = 1, 0x6474E550
_PCREL_SDATA4 = 0x1B
_BEYOND = 1 << 64


class Cfi(NamedTuple):
    """What CFI says of one address."""

    rule: UnwindRule
    signal: bool
    """The function is a signal trampoline."""


class ObjectCfi:
    """``.eh_frame`` in memory, and where that says nothing, ``.debug_frame`` of a file.

    :param eh_frame: opens the one.
    :param debug_frame: parses the other: each FDE by start and end address, in order and in the terms of the file.
    :param bias: what to add to an address in the file to get the one in memory.
    """

    def __init__(
        self,
        arch: Arch,
        read: ReadMemory,
        eh_frame: Callable[[], EhFrame | None],
        debug_frame: Callable[[], Mapping[tuple[int, int], FDE]],
        bias: int,
    ) -> None:
        self._arch = arch
        self._read = read
        self._open_eh_frame = eh_frame
        self._open_debug_frame = debug_frame
        self._bias = bias
        self._readers: dict[int, FdeReader] = {}
        self._functions: dict[tuple[int, int], CfiFunction] = {}
        self._known: dict[tuple[int, int], Cfi | None] = {}

    def at(self, pc: int, register: int | None = None) -> Cfi | None:
        """Return the rule for an address, ``None`` where no FDE contains it.

        :param register: ask for the caller's value of this DWARF register in place of the frame pointer's.
        :raises SFrameError: the CFI is malformed, cannot be read, or is more than a rule can express.
        """
        key = pc, self._arch.fp if register is None else register
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    @cached_property
    def _eh_frame(self) -> EhFrame | None:
        return self._open_eh_frame()

    @cached_property
    def _debug_frame(self) -> tuple[list[tuple[int, int]], Mapping[tuple[int, int], FDE]]:
        entries = self._open_debug_frame()
        return list(entries), entries

    def _find(self, pc: int, register: int) -> Cfi | None:
        record = self._eh_frame.record(pc) if self._eh_frame else None
        reader = self._readers.get(register)
        if reader is None:
            reader = self._readers[register] = FdeReader(self._read, self._arch._replace(fp=register))
        if record is not None:
            function = self._functions.get((record, register))
            if function is None:
                function = self._functions[record, register] = reader.function_at_record(record)
            return Cfi(reader.rule(function.row_at(pc), pc), function.signal)
        ranges, entries = self._debug_frame
        address = pc - self._bias & ADDRESS_MASK
        at = bisect_right(ranges, (address, _BEYOND)) - 1
        if at < 0 or address >= ranges[at][1]:
            return None
        function = decode(entries[ranges[at]], self._arch._replace(fp=register))
        return Cfi(reader.rule(function.row_at(address), address), function.signal)


def eh_frame_in(image: Image, read: ReadMemory, byteorder: str) -> EhFrame | None:
    """Return the ``.eh_frame`` of an image in memory, by the search table that the program headers point to.

    :raises SFrameError: the table cannot be read.
    """
    for segment in image.segments:
        if segment.kind == _PT_GNU_EH_FRAME:
            head = read(segment.address, 8)
            if head[0] != 1 or head[1] != _PCREL_SDATA4:
                return None
            (distance,) = struct.unpack(STRUCT_MARKS[byteorder] + "i", head[4:])
            start = segment.address + 4 + distance
            ends = [s.address + s.size for s in image.segments if s.kind == _PT_LOAD and s.address <= start]
            frames = SectionData(start, lazy_memory(read, start, max(max(ends, default=start) - start, 0)))
            return EhFrame(
                frames, SectionData(segment.address, lazy_memory(read, segment.address, segment.size)), byteorder
            )
    return None
