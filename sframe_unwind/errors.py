"""The exceptions of the core, which derive from :class:`SFrameError`, and the numbers in messages.

A message states what is wrong, where (section and offset, or address), what was expected and what was found.
"""

from __future__ import annotations


def counted(number: int, one: str, many: str = "", spec: str = "") -> str:
    """Return a number with the word that it needs, such as ``1 row`` or ``2 rows``.

    :param one: the word for 1; more words may follow it, such as ``"row is"``.
    :param many: the word for other numbers; empty: ``one`` with the regular ending of the plural.
    :param spec: the format of the number, as in :func:`format`.
    """
    if number == 1:
        word = one
    elif many:
        word = many
    elif one.endswith("ry"):
        word = one[:-1] + "ies"
    else:
        word = one + ("es" if one.endswith("s") else "s")
    return f"{number:{spec}} {word}"


class SFrameError(Exception):
    """Base class of the exceptions that the core raises on purpose."""


class FormatError(SFrameError):
    """The bytes violate the format.

    :param what: the problem, with the value found and the value expected.
    :param offset: position of the problem, in bytes from the start of the section.  ``None``: the raising code does
        not know the position; a caller adds it with :meth:`at`.
    :param section: name of the section that ``offset`` counts in.
    """

    def __init__(self, what: str, offset: int | None = None, section: str = ".sframe") -> None:
        self.what = what
        self.offset = offset
        self.section = section
        super().__init__(what if offset is None else f"{what} ({section} offset {offset:#x})")

    def at(self, offset: int) -> FormatError:
        """Return the error with ``offset`` (bytes) filled in; an error that has an offset is returned unchanged."""
        return self if self.offset is not None else type(self)(self.what, offset, self.section)

    def moved(self, distance: int) -> FormatError:
        """Return the error with ``distance`` bytes added to its offset.

        Use it where the offset counts from a record that begins ``distance`` bytes into the section.
        """
        return self if self.offset is None else type(self)(self.what, self.offset + distance, self.section)


class UnsupportedError(FormatError):
    """The data has a version, ABI, flag or type that this package does not know."""


class UnsupportedExpressionError(UnsupportedError):
    """A DWARF expression has an operation that a register rule cannot express; the message names the operation."""


class NoSFrameError(SFrameError):
    """The file, image or module has no SFrame data."""


class FileError(SFrameError):
    """A file cannot be read, or is not of the expected kind; the message names the file."""


class DecompressionError(FileError):
    """Compressed data is damaged, or nothing here decompresses it; the message names the missing packages."""


PACKAGES = {
    "gdb": "gdb-for-pwndbg",
    "lldb": "lldb-for-pwndbg",
    "code": "pyvex 'bitstring<5' capstone",
    "survey": "libarchive-c",
    "cluster": "distributed",
    "perf": "zstandard",
    "kernel": "drgn",
}
"""Arguments of ``pip install`` for each optional extra.  The project itself is in no package index, so that an extra
cannot be installed by its name."""


class MissingExtraError(SFrameError):
    """A package from an optional extra of this project is not installed, or cannot be loaded.

    :param package: name of the missing package.
    :param extra: name of the extra that has it.
    :param reason: why it cannot be loaded; empty: it is not installed.
    """

    def __init__(self, package: str, extra: str = "code", reason: str = "") -> None:
        install = f": pip install {PACKAGES[extra]} (Python 3.10 or later)"
        rest = f", which cannot be loaded: {reason}" if reason else install
        super().__init__(f"this needs the package {package}{rest}")


class ProcessError(SFrameError):
    """A process cannot be inspected: it does not exist, access is denied, or its architecture is not supported."""


class KernelError(SFrameError):
    """The target is not a Linux kernel, or its debug information or memory is not as expected."""


class ContextError(SFrameError):
    """A saved context cannot be used: its memory cannot be read, nothing is saved there, or registers are missing."""


class EncodeError(SFrameError):
    """A value does not fit its field, or the format cannot express it."""


class TranslationError(SFrameError):
    """A converted table does not give the same rules as its source, which is a bug of this package."""


class MemoryReadError(SFrameError):
    """Memory of the process cannot be read.

    :param address: address of the first byte requested.
    :param size: number of bytes requested.
    """

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.size = size
        super().__init__(f"cannot read {counted(size, 'byte')} of memory at {address:#x}")


class StepError(SFrameError):
    """A rule cannot be executed in this frame: a register is unknown, or the result is not a plausible frame."""
