"""Reads structures of a kernel in its memory: numbers, texts, and circular lists (``struct list_head``)."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.errors import KernelError
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.types import Place
from sframe_unwind.memory import CHUNK, ChunkCache

_LONGEST = 1024
"""Maximum length of a text, in bytes."""


class StructureReader:
    """Reads the members of structures.  The kernel must not run meanwhile: data that was read is kept.

    :param kernel: the kernel whose memory is read.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.read = ChunkCache(kernel.read).read
        self._byteorder = kernel.arch.byteorder

    def number(self, address: int, place: Place) -> int:
        """Return a member as an unsigned number.

        :param address: address of the structure.
        :raises MemoryReadError: it cannot be read.
        """
        return int.from_bytes(self.read(address + place.offset & ADDRESS_MASK, place.size), self._byteorder)

    def pointer(self, address: int) -> int:
        """Return the word at an address.

        :raises MemoryReadError: it cannot be read.
        """
        return self.number(address, Place(0, WORD_SIZE))

    def text(self, address: int) -> str:
        """Return the text at an address, up to its NUL.

        :raises MemoryReadError: it cannot be read.
        """
        found, start = b"", address
        while b"\0" not in found and len(found) < _LONGEST:
            size = CHUNK - start % CHUNK
            found, start = found + self.read(start, size), start + size & ADDRESS_MASK
        return found.partition(b"\0")[0].decode("utf-8", "replace")

    def entries(self, head: int, offset: int, what: str) -> Iterator[int]:
        """Yield the addresses of the structures in a list.

        :param head: address of the list's head.
        :param offset: offset of the list's links in a structure, in bytes.
        :param what: name of the structures, for messages.
        :raises KernelError: the list does not end.
        :raises MemoryReadError: it cannot be read.
        """
        link, seen = self.pointer(head), set[int]()
        while link != head:
            if link in seen:
                raise KernelError(f"the list of {what} at {head:#x} does not end: {link:#x} is in it twice")
            seen.add(link)
            yield link - offset & ADDRESS_MASK
            link = self.pointer(link)
