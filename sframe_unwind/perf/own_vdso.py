"""Finds the vDSO of this machine, for recordings of this machine that lack it because they went through a pipe."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import BinaryIO

from sframe_unwind.errors import FileError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.process.elf_file import ElfFile

_LINE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$", re.MULTILINE)


class _Own(NamedTuple):
    file: ElfFile
    stream: BinaryIO
    """Keeps the file open, which has no other name."""


def finder(is_own_machine: bool) -> Callable[[str], ElfFile | None]:
    """Return a function that returns the vDSO of this machine if it is that with a build ID, else ``None``.

    :param is_own_machine: whether the recording is of this machine and its kernel, so that a vDSO of which it has no
        build ID is also that of this machine.
    """

    def find(build_id: str) -> ElfFile | None:
        own = _own()
        if own is None or not (build_id == own.file.build_id if build_id else is_own_machine):
            return None
        return own.file

    return find


@cache
def _own() -> _Own | None:
    stream = tempfile.TemporaryFile()  # noqa: SIM115  # it stays open as long as this program runs
    try:
        found = _LINE.search(Path("/proc/self/maps").read_bytes())
        if found is None:
            return None
        start, end = (int(address, 16) for address in found.groups())
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            memory.seek(start)
            stream.write(memory.read(end - start))
        stream.flush()
        return _Own(ElfFile(f"/dev/fd/{stream.fileno()}"), stream)
    except (OSError, FileError):
        return None
