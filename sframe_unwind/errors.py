"""The exceptions of the core: one tree, so that a caller can catch :class:`SFrameError` and be done.

A message says what is wrong, where (section and offset, or address), what was expected and what was found.
"""

from __future__ import annotations


class SFrameError(Exception):
    """Base of everything that the core raises on purpose."""


class FormatError(SFrameError):
    """The bytes break the format.

    :param what: what is wrong, with the value found and what was expected.
    :param offset: where, in bytes from the start of the section; ``None`` where the code that raises the error cannot
        know and a caller adds it (:meth:`at`).
    :param section: what the offset counts in.
    """

    def __init__(self, what: str, offset: int | None = None, section: str = ".sframe") -> None:
        self.what = what
        self.offset = offset
        self.section = section
        super().__init__(what if offset is None else f"{what} ({section} offset {offset:#x})")

    def at(self, offset: int) -> FormatError:
        """Return the same error with its offset filled in, unless it already has one."""
        return self if self.offset is not None else type(self)(self.what, offset, self.section)

    def moved(self, distance: int) -> FormatError:
        """Return the same error for data that begins ``distance`` bytes further on in its section."""
        return self if self.offset is None else type(self)(self.what, self.offset + distance, self.section)


class UnsupportedError(FormatError):
    """Well-formed as far as can be told, but of a version, ABI or kind that is not known here."""


class UnsupportedExpressionError(UnsupportedError):
    """A DWARF expression computes more than a register rule expresses; the message names the operation."""


class NoSFrameError(SFrameError):
    """There is no SFrame data where it was looked for."""


class FileError(SFrameError):
    """A file cannot be read as what it should be; the message names the file."""


class MissingExtraError(SFrameError):
    """A package is not installed that only an extra of this one brings.

    :param package: its name.
    """

    def __init__(self, package: str) -> None:
        super().__init__(f"this wants the package {package}: pip install 'sframe-unwind[code]' (Python 3.10 or later)")


class ProcessError(SFrameError):
    """A process cannot be looked into: it is not there, it is somebody else's, or it is of another kind."""


class EncodeError(SFrameError):
    """A value does not fit the field that the format has for it."""


class MemoryReadError(SFrameError):
    """Memory of the process cannot be read.

    :param address: first address asked for.
    :param size: number of bytes asked for.
    """

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.size = size
        super().__init__(f"cannot read {size} bytes of memory at {address:#x}")


class StepError(SFrameError):
    """A rule cannot be carried out in this frame: a register is not known, or the result makes no sense."""
