"""Bounds on unpacking archives: a malicious one can unpack to more than fits on the machine."""

from __future__ import annotations

from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple


class Bounds(NamedTuple):
    """Limits for one file and the archives in it."""

    depth: int = 6
    """Maximum nesting of archives; a package has two levels."""
    growth: int = 200
    """Maximum ratio of unpacked to packed size; for packages, it is about 3 to 20."""
    always: int = 1 << 30
    """Number of bytes that may be unpacked in any case."""
    file: int = 1 << 30
    """Maximum size of an ELF file in bytes: it is read into memory."""
    members: int = 1_000_000


class TooMuchError(SFrameError):
    """An archive exceeds a bound, and is not read further."""


class Budget:
    """The remaining limits of one file, including the archives in it.

    :param size: size of the file, in bytes.
    """

    def __init__(self, bounds: Bounds, size: int) -> None:
        self.bounds = bounds
        self._bytes = self._all = max(bounds.always, bounds.growth * size)
        self._members = bounds.members

    def take(self, size: int) -> None:
        """Account for bytes that have been unpacked.

        :raises TooMuchError: they are too many.
        """
        self.check(size)
        self._bytes -= size

    def check(self, size: int) -> None:
        """Check that a number of bytes may be unpacked.

        :raises TooMuchError: they may not.
        """
        if size > self._bytes:
            raise TooMuchError(f"unpacks to more than {self._all:,} bytes")

    def take_member(self) -> None:
        """Account for a member of an archive.

        :raises TooMuchError: there are too many.
        """
        self._members -= 1
        if self._members < 0:
            raise TooMuchError(f"more than {self.bounds.members:,} members")
