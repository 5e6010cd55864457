"""Follows a libunwind list as it changes."""

from __future__ import annotations

from itertools import islice
from typing import Callable

from sframe_unwind.address import ByteOrder, RangeMap
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.runtime_code.libunwind.layout import Structures
from sframe_unwind.runtime_code.libunwind.listing import Head, read_entries, read_entry, read_head
from sframe_unwind.runtime_code.libunwind.registered import Registered, registered


class UnwindList:
    """The registrations in one libunwind list.

    :param read: reads the current memory of the process.
    :param address: address of the list.
    :param byteorder: ``"little"`` or ``"big"``.
    :param report: called with one line if the list is damaged.
    """

    def __init__(self, read: ReadMemory, address: int, byteorder: ByteOrder, report: Callable[[str], None]) -> None:
        self._read = read
        self._address = address
        self._structures = Structures(byteorder)
        self._report = report
        self._head: Head | None = None
        self._settled = False
        self._index: RangeMap[int] = RangeMap(())
        self._modules: dict[tuple[int, int, int], Registered] = {}

    def refresh(self) -> bool:
        """Read the list again if it has changed or may be incomplete; return whether it may have changed."""
        try:
            head = read_head(self._read, self._structures, self._address)
            if head == self._head and self._settled:
                return False
            entries, self._settled = read_entries(self._read, self._structures, head, self._report)
        except SFrameError as error:
            self._report(str(error))
            entries, head = [], Head(0, 0, 0)
        if not entries and not self._index:
            self._head = head
            return False
        self._head = head
        self._index = RangeMap(entries)
        self._modules.clear()
        return True

    def find(self, pc: int) -> Registered | None:
        """Return the registration for an address, or ``None``."""
        found = self._index.find(pc)
        return None if found is None else self._module(found)

    def modules(self, limit: int) -> list[Registered]:
        """Return the first ``limit`` registrations in the order of their addresses."""
        modules = (self._module(found) for found in islice(self._index, limit))
        return [module for module in modules if module is not None]

    def __len__(self) -> int:
        return len(self._index)

    def _module(self, found: tuple[int, int, int]) -> Registered | None:
        module = self._modules.get(found)
        if module is None:
            start, end, address = found
            try:
                entry = read_entry(self._read, self._structures, address)
            except MemoryReadError:
                entry = None
            if entry is None or (entry.start, entry.end) != (start, end):
                self._settled = False  # the entry has changed since the list was read
                return None
            module = self._modules[found] = registered(entry, self._read, self._structures)
        return module
