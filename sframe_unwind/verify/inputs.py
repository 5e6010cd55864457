"""Expands the paths on the command line to the ELF files to verify: files, members of archives, directories."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Callable, TypeVar

from sframe_unwind import elf
from sframe_unwind.address import Range
from sframe_unwind.elf import ElfBinary, archive
from sframe_unwind.elf.cfi import DEBUG_FRAMES, EH_FRAME
from sframe_unwind.elf.reader import FileReader, file_type, is_directory, open_file
from sframe_unwind.elf.records import MAGIC_64
from sframe_unwind.errors import FileError, SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.verify import verify_elf
from sframe_unwind.verify.plan import Plan
from sframe_unwind.verify.verdict import Verdict

Tick = Callable[[], None]
IsWanted = Callable[[ElfBinary], bool]
Result = TypeVar("Result")

_MAGIC_SIZE = 8


class Input(NamedTuple):
    """One ELF file."""

    name: str
    """The name shown to the user: a path, or ``lib.a(member.o)``."""
    member: archive.Member | None
    """The member of an archive; ``None``: the name is the path of a file."""


class Failure(NamedTuple):
    """A file that cannot be examined, with the reason."""

    name: str
    error: str
    is_internal: bool = False
    """The reason is a bug of this package."""

    def to_json(self) -> dict[str, str]:
        """Return the object of ``verify --json``."""
        return {"file": self.name, "error": self.error.removeprefix(f"{self.name}: ")}

    def __str__(self) -> str:
        return self.error if self.error.startswith(f"{self.name}: ") else f"{self.name}: {self.error}"


def inputs(names: list[str], with_cfi: bool = False, tick: Tick = lambda: None) -> Iterator[Input | Failure]:
    """Yield the ELF files that names stand for: for an archive its members with SFrame, for a directory all such files.

    :param with_cfi: also yield files that have only DWARF CFI.
    :param tick: called for each file that is opened.
    """

    def is_wanted(file: ElfBinary) -> bool:
        tick()
        return _has_table(file) if with_cfi else file.has_sframe

    for name in names:
        found = False
        for item in (_directory if is_directory(name) else _file)(Path(name), is_wanted):
            found = True
            yield _with_advice(name, item) if isinstance(item, Failure) and len(names) > 1 else item
        if not found:
            table = f"{elf.SECTION_NAME} or {EH_FRAME}" if with_cfi else elf.SECTION_NAME
            yield Failure(name, f"nothing with a {table} section in it")


def _with_advice(name: str, failure: Failure) -> Failure:
    """Return the failure of one of several names; if there is no file with this one, it may be that of a function."""
    is_missing = "/" not in name and failure.error == f"{name}: {os.strerror(errno.ENOENT)}"
    advice = f"; a function is named by --function {name}"
    return failure._replace(error=failure.error + advice) if is_missing else failure


def answer(
    item: Input | Failure,
    plan: Plan = Plan(),  # noqa: B008  # it cannot change
    only: Callable[[ElfBinary], tuple[Range, ...] | None] | None = None,
) -> Verdict | Failure:
    """Verify one file.

    :param only: returns the functions of the file to report, see :attr:`Plan.only`.
    """
    chosen = only or (lambda _: plan.only)
    return examined(item, lambda binary: verify_elf(binary, plan._replace(only=chosen(binary))))


def examined(item: Input | Failure, examine: Callable[[ElfBinary], Result]) -> Result | Failure:
    """Return the result of a function for one file, or the reason why there is none."""
    if isinstance(item, Failure):
        return item
    try:
        with opened(item) as binary:
            return examine(binary)
    except SFrameError as error:
        return Failure(item.name, str(error))


@contextmanager
def opened(item: Input) -> Iterator[ElfBinary]:
    """Open an ELF file, or the member of an archive.

    :raises FileError: it cannot be read, or is not a 64-bit ELF file.
    """
    if item.member is None:
        with elf.opened(item.name) as file:
            yield file
    else:
        with _contents(item.member) as stream, elf.parsed(stream, item.name) as binary:
            yield binary


def _file(path: Path, is_wanted: IsWanted) -> Iterator[Input | Failure]:
    try:
        start = _start(path)
        if archive.is_archive(start):
            yield from _archive(path, is_wanted)
        else:
            yield Input(str(path), None)
    except FileError as error:
        yield Failure(str(path), str(error))


def _directory(folder: Path, is_wanted: IsWanted) -> Iterator[Input | Failure]:
    failures: list[OSError] = []
    for base, folders, files in os.walk(folder, onerror=failures.append):
        folders.sort()
        for path in (Path(base, name) for name in sorted(files)):
            try:
                if path.is_symlink() or file_type(path) != stat.S_IFREG:
                    continue
                start = _start(path)
                if archive.is_archive(start):
                    yield from _archive(path, is_wanted)
                elif start.startswith(MAGIC_64):
                    with elf.opened(path) as file:
                        worth = is_wanted(file)
                    if worth:
                        yield Input(str(path), None)
            except FileError as error:
                yield Failure(str(path), str(error))
            except OSError as error:  # the directory may be read, but not searched
                yield Failure(str(path), error.strerror or str(error))
    for failure in failures:
        yield Failure(str(failure.filename), failure.strerror or str(failure))


def _archive(path: Path, is_wanted: IsWanted) -> Iterator[Input | Failure]:
    """Yield the members with SFrame; others (not ELF files, or assembled without SFrame) are left out."""
    for member in archive.members(path):
        name = f"{path}({member.name})"
        try:
            with _contents(member) as stream:
                if not stream.read(_MAGIC_SIZE).startswith(MAGIC_64):
                    continue
                stream.seek(0)
                with elf.parsed(stream, name) as binary:
                    worth = is_wanted(binary)
            if worth:
                yield Input(name, member)
        except FileError as error:
            yield Failure(name, str(error))


def _has_table(binary: ElfBinary) -> bool:
    return binary.has_sframe or any(
        section.name in (EH_FRAME, *DEBUG_FRAMES) and section.size for section in binary.sections
    )


def _start(path: Path) -> bytes:
    try:
        with open_file(path) as stream:
            return stream.read(_MAGIC_SIZE)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error


def _contents(member: archive.Member) -> BinaryIO:
    if member.size is None:  # a thin archive can name any file
        return open_file(member.file)
    return FileReader(member.file).part(member.offset, member.size)
