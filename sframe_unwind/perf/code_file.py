"""A file with code that a process had mapped, at one address."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from sframe_unwind.address import page_start
from sframe_unwind.arch import Arch
from sframe_unwind.elf.constants import PF_X
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.image.eh_frame import eh_frame_in
from sframe_unwind.image.elf_image import read_image
from sframe_unwind.perf.linux_reader import LinuxModule
from sframe_unwind.perf.mappings import Mapping
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import Files
from sframe_unwind.process.objects import LoadedObject
from sframe_unwind.sframe.section import Section
from sframe_unwind.unwind.modules import Module

NOT_FOUND = "the file was not found"
_LONGEST_START = 256
"""Number of bytes to compare: more than the code at the entry point of a dynamic linker has."""
_PADDING = 8
"""Number of bytes of padding after which another function begins.  Shorter padding may align a loop."""


class CodeFile:
    """A loaded file.  Memory is read from its contents: a recording has only the stacks, and code does not change.

    :param mapping: the mapping of its code.
    :param build_id: the build ID in hexadecimal digits; empty: not known.
    :param convert: make SFrame from the CFI if the file has none.
    :raises SFrameError: the mapping is not of a loaded segment, or the file has no program headers.
    """

    def __init__(
        self, mapping: Mapping, build_id: str, file: ElfFile, arch: Arch, files: Files, convert: bool = False
    ) -> None:
        self.path = mapping.path
        self.build_id = build_id or file.build_id
        self._file = file
        self._arch = arch
        self._convert = convert
        self.bias = self._bias(mapping)
        self.image = read_image(self.read, self.bias + file.base)
        self.ranges = self.image.code_ranges()
        self.loaded = LoadedObject(
            name=mapping.path, image=self.image, arch=arch, read=self.read, files=files, find_file=lambda: file
        )
        self._is_start: dict[int, bool] = {}

    def _bias(self, mapping: Mapping) -> int:
        for load in self._file.loads:
            # LLD lets segments share a page of the file, and maps that page once for each.
            end = load.offset + load.file_size
            if load.flags & PF_X and page_start(load.offset) <= mapping.offset < end:
                return mapping.start - mapping.offset + load.offset - load.address
        raise MemoryReadError(mapping.start, mapping.end - mapping.start)

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of a loaded segment.

        :raises MemoryReadError: the file does not have them all.
        """
        return self._file.loaded(address, size, self.bias)

    def is_start(self, pc: int) -> bool:
        """Return whether an address is at the entry point of the file; nothing calls this code, and no CFI covers it.

        The dynamic linkers of glibc are such files: the kernel starts a process there.
        """
        if pc not in self._is_start:
            entry = self._file.entry_point + self.bias
            is_near = self._file.entry_point != 0 and 0 <= pc - entry < _LONGEST_START
            self._is_start[pc] = (
                is_near and not any(map(self.loaded.cfi.at, range(entry, pc + 1))) and not self._has_padding(entry, pc)
            )
        return self._is_start[pc]

    def _has_padding(self, start: int, end: int) -> bool:
        found = self._arch.padding.finditer(self.read(start, end - start))
        return any(match.end() - match.start() >= _PADDING for match in found)

    @cached_property
    def sframe(self) -> Module:
        """The file, with its SFrame as this project reads it."""
        return Module(self.path, self.ranges, self._section, load_rewriter=lambda: self._file.rewriter)

    @cached_property
    def sframe_linux(self) -> Module:
        """The file, with its SFrame as Linux would load it."""
        path = "" if self._is_made else self._file.path
        return LinuxModule(self.path, self.ranges, lambda: self.sframe.section, path, self.bias)

    @property
    def _is_made(self) -> bool:
        return self._convert and self._own_section() is None

    def _section(self) -> Section | None:
        found = self._own_section()
        if found is None and self._convert:
            found = self._made()
        return found

    def _own_section(self) -> Section | None:
        found = self.image.sframe_section(self.read)
        if found is None and ".sframe" in self._file.sections:
            address, size = self._file.sections[".sframe"]
            found = Section(self.read(address + self.bias, size), address + self.bias)
        return found

    def _made(self) -> Section | None:
        """Return SFrame made from ``.eh_frame``, as ``convert`` would; ``None``: there is no ``.eh_frame``."""
        from sframe_unwind.translation.generate import generate

        cfi = eh_frame_in(self.image, self.read, self._arch)
        return None if cfi is None else Section(generate(cfi, self.ranges, self._arch), cfi.address)


def open_code_file(
    mapping: Mapping,
    build_id: str,
    arch: Arch,
    files: Files,
    convert: bool,
    vdso: Callable[[str], ElfFile | None] = lambda _: None,
) -> tuple[CodeFile | None, str]:
    """Return the file of a mapping, or ``None`` and the reason.

    :param vdso: finds the vDSO by its build ID, if no folder has it.
    """
    if not mapping.path.startswith("/") and mapping.path != "[vdso]":
        return None, "code without a file"
    if mapping.path.startswith(("//anon", "/memfd:", "/dev/zero", "/SYSV")):
        return None, "code without a file"
    found = files.find(mapping.path, build_id)
    if found is None and mapping.path == "[vdso]":
        found = vdso(build_id)
    if found is None:
        return None, NOT_FOUND if mapping.path != "[vdso]" else "the vDSO was not found"
    try:
        return CodeFile(mapping=mapping, build_id=build_id, file=found, arch=arch, files=files, convert=convert), ""
    except SFrameError:
        return None, "the file does not fit the mapping"
