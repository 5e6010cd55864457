"""Finds the files that a process had mapped, and their separate debug files."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from typing import Callable, Optional

from sframe_unwind.errors import FileError
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.source.debug_info import DebugInfo

DEBUG_FOLDER = "/usr/lib/debug"
"""The folder in which distributions install debug files."""

DEBUG_INFO, EXECUTABLE = "debuginfo", "executable"
"""The kinds of files for a build ID, as debuginfod names them."""

Download = Callable[[str, str], Optional[str]]
"""``(build ID, kind)``: returns the path of the file, or ``None``."""

_ITSELF = ("", "/elf", "/vdso")
"""Suffixes after the build ID in the names of files without debug data: in the folders of distributions, and in those
of ``perf record`` (``tools/perf/util/build-id.c`` of Linux)."""


class Files:
    """Finds and opens files.  Each file is opened once.

    :param roots: folders that a path is relative to, in order of preference; ``""`` is the root of the file system.
    :param debug_folders: folders with debug files by build ID.
    :param machine: ``e_machine`` and byte order.  Files of another machine are ignored.
    :param report: called with one line for each message to the user.
    :param lines: whether source lines are wanted.
    :param download: downloads a file; ``None``: nothing is downloaded.
    """

    def __init__(
        self,
        roots: Sequence[str],
        debug_folders: Sequence[str],
        machine: tuple[str, str],
        report: Callable[[str], None],
        lines: bool = True,
        download: Download | None = None,
    ) -> None:
        self._lines = lines
        self._download = download
        self._roots = tuple(roots)
        self._debug_folders = tuple(debug_folders)
        self._machine = machine
        self._report = report
        self._opened: dict[str, ElfFile | None] = {}
        self.unfit: dict[str, str] = {}
        """The reason, as one line, for each file that is at the path of a loaded one but was not used."""
        self.refused = False
        """Whether a file was not used, because its build ID differs from that of the loaded one."""

    def find(self, path: str, build_id: str) -> ElfFile | None:
        """Return the file that was mapped from a path, or ``None``.

        If the file there is not the one that was mapped, it is found by build ID, else downloaded.

        :param build_id: the build ID in the memory of the process; empty: not known.  If no file has this build ID,
            :attr:`unfit` gets a line.
        """
        roots = self._roots if "/" in path else ()  # a name without "/" stands for an image without a file
        candidates = [file for root in roots if (file := self.open(_below(root, path)))]
        for file in candidates:
            if build_id in ("", file.build_id):
                return file
        by_id = self._by_build_id(build_id, _ITSELF)
        if by_id is None and "/" in path:
            by_id = self._downloaded(build_id, EXECUTABLE)
        if by_id is None and candidates:
            self.unfit[candidates[0].path] = self._refuse(candidates[0], build_id)
        return by_id

    def leads_elsewhere(self, path: str, link: str) -> bool:
        """Return whether a path leads to another file than the one that was mapped, or to none.

        :param link: opens the mapped file.  If the user may not use it, the answer is ``False``.
        """
        try:
            mapped = os.stat(link)  # noqa: PTH116  # a pathlib.Path would refuse odd names
        except OSError:
            return False
        for root in self._roots:
            with contextlib.suppress(OSError):
                return not os.path.samestat(mapped, os.stat(_below(root, path)))  # noqa: PTH116
        return True

    def _by_build_id(self, build_id: str, suffixes: Sequence[str]) -> ElfFile | None:
        """Return the file for a build ID from the debug folders, or ``None``."""
        if len(build_id) < 4:
            return None
        name = f".build-id/{build_id[:2]}/{build_id[2:]}"
        paths = [_below(folder, name) for folder in self._debug_folders]
        found = (self.open(f"{path}{suffix}") for suffix in suffixes for path in paths)
        return next((file for file in found if file and file.build_id == build_id), None)

    def _downloaded(self, build_id: str, kind: str) -> ElfFile | None:
        if not build_id or self._download is None:
            return None
        path = self._download(build_id, kind)
        found = self.open(path) if path else None
        return found if found is not None and found.build_id == build_id else None

    def debug_file(self, file: ElfFile | None, build_id: str) -> ElfFile | None:
        """Return the separate debug file of a loaded file, or ``None``.

        It is found by build ID, else by the name in ``.gnu_debuglink`` if its CRC-32 is right, else downloaded.

        :param file: the loaded file; ``None``: it was not found.
        """
        found = self._by_build_id(build_id, (".debug",))
        found = found or (self._by_debug_link(file) if file is not None else None)
        return found or self._downloaded(build_id, DEBUG_INFO)

    def debug_info(self, file: ElfFile | None, find_debug_file: Callable[[], ElfFile | None]) -> DebugInfo | None:
        """Return the debug information of a loaded file or of its separate debug file; ``None``: none is wanted."""
        if not self._lines:
            return None
        if file is not None and file.debug_info is not None:
            return file.debug_info
        found = find_debug_file()
        return found.debug_info if found is not None else None

    def _by_debug_link(self, file: ElfFile) -> ElfFile | None:
        """Search as GDB does: beside the file, in ``.debug`` there, and at its path below the debug folders.

        The folder of the file is one of the process, which may see other files at its paths than this program.
        """
        if file.debug_link is None:
            return None
        name, crc = file.debug_link
        folders = self._folders_of(file)
        beside = [_below(root, folder) for folder in folders for root in (*self._roots, "")]
        places = [place for folder in beside for place in (folder, f"{folder}/.debug")]
        places += [_below(debug, folder) for folder in folders for debug in self._debug_folders]
        found = (self.open(f"{place}/{name}") for place in dict.fromkeys(places))
        return next((one for one in found if one and one is not file and one.crc32() == crc), None)

    def _folders_of(self, file: ElfFile) -> list[str]:
        """Return the folder of a file without symbolic links; before it, that in which it was found below a root."""
        real = os.path.realpath(file.path)
        paths = [real]
        root = next((root for root in self._roots if root and file.path.startswith(f"{root}/")), "")
        if root:
            below = os.path.realpath(root).rstrip("/")  # of a process, the kernel names a root that only it sees
            paths = [file.path[len(root) :], real[len(below) :] if real.startswith(f"{below}/") else real]
        return list(dict.fromkeys(map(os.path.dirname, paths)))

    def given(self, path: str) -> ElfFile:
        """Return a file that the user named.

        :raises FileError: the file cannot be read, or is for another machine.
        """
        file = ElfFile(path)
        if file.machine != self._machine:
            found, expected = (f"{name}, {order}-endian" for name, order in (file.machine, self._machine))
            raise FileError(f"{path}: for {found}; expected {expected}")
        return file

    def fits(self, file: ElfFile, build_id: str) -> bool:
        """Return whether a file is the one that was loaded; if not, report that.

        :param build_id: the build ID of the loaded file; empty: not known.
        """
        if build_id in ("", file.build_id):
            return True
        self._report(self._refuse(file, build_id))
        return False

    def _refuse(self, file: ElfFile, build_id: str) -> str:
        """Note that a file is not used; return a line about it."""
        self.refused = True
        return f"{file.path}: build ID {file.build_id or 'missing'}, but {build_id} was loaded: this file is not used"

    def open(self, path: str) -> ElfFile | None:
        """Return the file at a path; ``None``: it does not exist, is not an ELF file, or is for another machine."""
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
    """Return whether a path is a regular file with ELF magic bytes.  Processes map many data files too."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  # a pathlib.Path would refuse odd names
            return False
        with open(path, "rb") as stream:  # noqa: PTH123  # pathlib takes 4 ms to import
            return stream.read(4) == b"\x7fELF"
    except (OSError, ValueError):
        return False
