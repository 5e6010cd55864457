"""Where the files are that a process had mapped."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from sframe_unwind.errors import FileError
from sframe_unwind.process.elf_file import ElfFile

DEBUG_FOLDER = "/usr/lib/debug"
"""Where distributions install debug files."""


class Files:
    """Finds files, each once.

    :param roots: folders to look below, the first that has the path counts; ``""`` is the system itself.
    :param debug_folders: folders with debug files by build ID.
    :param machine: ``e_machine`` and byte order; a file for another one is not taken.
    :param report: called once for each thing that the user should know, with one line.
    """

    def __init__(
        self,
        roots: Sequence[str],
        debug_folders: Sequence[str],
        machine: tuple[str, str],
        report: Callable[[str], None],
    ) -> None:
        self._roots = tuple(roots)
        self._debug_folders = tuple(debug_folders)
        self._machine = machine
        self._report = report
        self._opened: dict[str, ElfFile | None] = {}

    def find(self, path: str, build_id: str) -> ElfFile | None:
        """Return the file that was mapped from a path.

        :param build_id: what the memory of the process says; empty where it does not.  A file with another one is
            taken, with a word to the user, where there is no better one.
        """
        roots = self._roots if "/" in path else ()  # else it is a name for what has no file
        candidates = [file for root in roots if (file := self.open(_below(root, path)))]
        for file in candidates:
            if build_id in ("", file.build_id):
                return file
        by_id = self.by_build_id(build_id, suffix="")
        if by_id is None and candidates:
            self.check(candidates[0], build_id)
            return candidates[0]
        return by_id

    def by_build_id(self, build_id: str, suffix: str = ".debug") -> ElfFile | None:
        """Return the file that a debug folder has for a build ID.

        :param suffix: ``".debug"`` for the debug file, nothing for the file itself.
        """
        if len(build_id) < 4:
            return None
        name = f".build-id/{build_id[:2]}/{build_id[2:]}{suffix}"
        found = (self.open(str(Path(folder) / name)) for folder in self._debug_folders)
        return next((file for file in found if file and file.build_id == build_id), None)

    def given(self, path: str) -> ElfFile:
        """Return a file that the user named.

        :raises FileError: it cannot be read, or is for another machine.
        """
        file = ElfFile(path)
        if file.machine != self._machine:
            found, expected = (f"{name}, {order}-endian" for name, order in (file.machine, self._machine))
            raise FileError(f"{path}: for {found}; expected {expected}")
        return file

    def check(self, file: ElfFile, build_id: str) -> None:
        """Tell the user where a file is not the one that was loaded.

        :param build_id: of the one that was loaded; empty where it is not known.
        """
        if build_id and file.build_id != build_id:
            self._report(
                f"{file.path}: build ID {file.build_id or 'missing'}, but {build_id} was loaded:"
                " what this file gives may be wrong"
            )

    def open(self, path: str) -> ElfFile | None:
        """Return a file for the right machine, ``None`` where there is none."""
        if path not in self._opened:
            file = None
            try:
                file = ElfFile(path) if _is_elf(path) else None
            except FileError as error:
                self._report(str(error))
            self._opened[path] = file if file is not None and file.machine == self._machine else None
        return self._opened[path]


def _below(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path.lstrip('/')}" if root else path


def _is_elf(path: str) -> bool:
    """Return whether a regular file begins as an ELF file; most of what else is mapped is data."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  # a pathlib.Path would refuse odd names
            return False
        with Path(path).open("rb") as stream:
            return stream.read(4) == b"\x7fELF"
    except (OSError, ValueError):
        return False
