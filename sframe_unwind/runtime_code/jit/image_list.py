"""Follows the list of JIT images of a process (``__jit_debug_descriptor``) as it changes."""

from __future__ import annotations

import struct
from typing import Callable

from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.memory import STRUCT_MARKS, ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.runtime_code.jit.image import JitImage, open_image

_VERSION = 1
MAX_IMAGES = 20_000
"""Maximum number of images; a longer list counts as damaged."""
MAX_SIZE = 1 << 32
"""Maximum size of an image in bytes; a larger one counts as damaged."""


class _Code(NamedTuple):
    """``struct jit_code_entry``, without its links."""

    entry: int
    address: int
    size: int


class JitList:
    """The registered JIT images.

    :param read: reads the current memory of the process.
    :param address: address of the descriptor.
    :param arch: architecture of the process.
    :param report: called with one line for a damaged list or image.
    """

    def __init__(self, read: ReadMemory, address: int, arch: Arch, report: Callable[[str], None]) -> None:
        mark = STRUCT_MARKS[arch.byteorder]
        self._read = read
        self._address = address
        self._arch = arch
        self._report = report
        self._descriptor = struct.Struct(mark + "I12xQ")
        """version, first_entry"""
        self._entry = struct.Struct(mark + "Q8xQQ")
        """next_entry, symfile_addr, symfile_size"""
        self._images: dict[_Code, JitImage | None] = {}
        self._index: RangeMap[JitImage] = RangeMap(())

    def refresh(self) -> bool:
        """Read the list again; open new images and drop removed ones.  Return whether the list changed.

        The list has no counter of changes, and a new image can have the address of an old one.  Therefore the memory
        of each image that was read before is read again and compared.
        """
        images: dict[_Code, JitImage | None] = {}
        for code in self._codes():
            known = self._images.get(code)
            images[code] = known if known is not None and known.unchanged() else self._open(code)
        if images == self._images:
            return False
        self._images = images
        self._index = RangeMap((start, end, image) for image in images.values() if image for start, end in image.ranges)
        return True

    def find(self, pc: int) -> JitImage | None:
        """Return the image that contains the code at an address, or ``None``."""
        found = self._index.find(pc)
        return found and found[2]

    def modules(self) -> list[JitImage]:
        """Return all images that could be opened."""
        return [image for image in self._images.values() if image]

    def _codes(self) -> list[_Code]:
        codes: dict[int, _Code] = {}
        try:
            version, entry = self._descriptor.unpack(self._read(self._address, self._descriptor.size))
            if version != _VERSION:
                if version or entry:  # all zeros: the process has not used the list yet
                    raise FormatError(f"it has version {version}, expected {_VERSION}")
                return []
            while entry:
                if entry in codes or len(codes) == MAX_IMAGES:
                    raise FormatError(f"it is circular or too long, at {entry:#x}")
                following, address, size = self._entry.unpack(self._read(entry, self._entry.size))
                codes[entry] = _Code(entry, address, size)
                entry = following
        except SFrameError as error:
            self._report(f"the list of JIT images at {self._address:#x} ends early: {error}")
        return list(codes.values())

    def _open(self, code: _Code) -> JitImage | None:
        try:
            if not 0 < code.size <= MAX_SIZE:
                raise FormatError(f"it has {code.size:,} bytes, expected 1 to {MAX_SIZE:,}")
            return open_image(self._read, code.address, code.size, self._arch)
        except SFrameError as error:
            self._report(f"the JIT image at {code.address:#x} is not used: {error}")
            return None
