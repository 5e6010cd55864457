"""Finds the objects that a process has loaded, from its mapped files and from the list of the dynamic linker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial

from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.image.elf_image import Image, build_id_in, read_image
from sframe_unwind.image.link_map import AT_PHDR, EXECUTABLE, loaded_images
from sframe_unwind.memory import read_c_string
from sframe_unwind.process.base import FileMapping
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import Files
from sframe_unwind.process.memory import Memory
from sframe_unwind.process.objects import LoadedObject

AT_EXECFN = 31
"""Key of the auxiliary vector: address of the path from which the process was started."""

_MAX_PATH = 4096
"""``PATH_MAX``, in bytes."""


class MappedFile:
    """A file that was mapped.  It is opened on demand.

    :param mapping: its path when it was mapped, and the address of its first byte in memory.
    :param given: the file that the user named for it; ``None``, or one of another build: search for the path or the
        build ID.
    """

    def __init__(
        self, mapping: FileMapping, arch: Arch, memory: Memory, files: Files, given: ElfFile | None = None
    ) -> None:
        self.path = mapping.path
        self.base = mapping.start
        self._link = mapping.link
        self._arch = arch
        self._memory = memory
        self._files = files
        self._given = given

    @cached_property
    def file(self) -> ElfFile | None:
        """The file; ``None``: it was not found."""
        read = self._memory.read_saved
        try:
            build_id = build_id_in(read_image(read, self.base), read, self._arch.byteorder)
        except SFrameError:
            build_id = ""  # the first page was not saved
        if self._given and self._files.fits(self._given, build_id):
            return self._given
        is_elsewhere = self._link and self._files.leads_elsewhere(self.path, self._link)
        return (self._files.open(self._link) if is_elsewhere else None) or self._files.find(self.path, build_id)

    def read(self, start: int, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes at file offset ``start`` plus ``offset``; none if the file was not found."""
        return self.file.read(start + offset, size) if self.file else b""


class Loader:
    """Finds the loaded objects of one process, and adds their files to its memory.

    :param auxv: the auxiliary vector.
    :param files: finds the files.
    :param given: the executable that the user named; ``None``: search for it.
    """

    def __init__(
        self, arch: Arch, auxv: Mapping[int, int], memory: Memory, files: Files, given: ElfFile | None = None
    ) -> None:
        self._arch = arch
        self._auxv = auxv
        self._memory = memory
        self._files = files
        self._given = given
        self.executable: MappedFile | None = None
        """The file of the executable.  :meth:`objects` sets it; ``None``: the process does not identify it."""

    def objects(self, mappings: Sequence[FileMapping]) -> list[LoadedObject]:
        """Return the loaded objects.

        :param mappings: the mappings of files; empty: they are not known.
        """
        found: dict[int, LoadedObject] = {}
        for file in self._mapped(mappings):
            try:
                image = read_image(self._memory.read, file.base)
            except SFrameError:
                continue  # the file is not an ELF file
            if image.code_ranges() and _is_loaded(image, file.path, mappings):
                found[file.base] = self._object(file, image)
        listed: dict[int, MappedFile] = {}

        def provide(name: str, address: int) -> bool:
            listed[address] = self._listed(name, address)
            return self._map_segments(listed[address])

        for name, image, address in loaded_images(self._memory.read, self._auxv, self._arch.byteorder, provide):
            if address not in found:
                if address not in listed:  # the kernel saves the page with the ELF header, but no other page of code
                    provide(name, address)
                found[address] = self._object(listed[address], image)
        return list(found.values())

    def _object(self, file: MappedFile, image: Image) -> LoadedObject:
        return LoadedObject(
            name=file.path,
            image=image,
            arch=self._arch,
            read=self._memory.read,
            files=self._files,
            find_file=lambda: file.file,
        )

    def _file(self, mapping: FileMapping, is_executable: bool) -> MappedFile:
        given = self._given if is_executable else None
        file = MappedFile(mapping, self._arch, self._memory, self._files, given)
        if is_executable:
            self.executable = file
        return file

    def _mapped(self, mappings: Sequence[FileMapping]) -> list[MappedFile]:
        """Add the mapped parts of all files to the memory; return the files."""
        headers = self._auxv.get(AT_PHDR, 0)
        executable = next((mapping.path for mapping in mappings if mapping.start <= headers < mapping.end), None)
        files: dict[str, MappedFile] = {}
        found = []
        for mapping in mappings:
            if mapping.offset == 0:
                files[mapping.path] = self._file(mapping, mapping.path == executable)
                found.append(files[mapping.path])
            if mapping.path in files:
                read = partial(files[mapping.path].read, mapping.offset)
                self._memory.add_mapped(mapping.start, mapping.end, read)
        return found

    def _listed(self, name: str, address: int) -> MappedFile:
        """Return the file of an image in the dynamic linker's list, or of the executable."""
        if name != EXECUTABLE:
            return self._file(FileMapping(address, address, 0, name), is_executable=False)
        if self.executable is not None:
            return self.executable
        name = self._given.path if self._given else name
        with suppress(SFrameError):
            name = read_c_string(self._memory.read, self._auxv.get(AT_EXECFN, 0), _MAX_PATH) or name
        return self._file(FileMapping(address, address, 0, name), is_executable=True)

    def _map_segments(self, file: MappedFile) -> bool:
        """Add the loaded segments of a file to the memory; return whether the file was found."""
        if file.file is None or not file.file.loads:
            return False
        bias = file.base - file.file.base
        for load in file.file.loads:
            start = load.address + bias
            self._memory.add_mapped(start, start + load.file_size, partial(file.read, load.offset))
        return True


def _is_loaded(image: Image, path: str, mappings: Sequence[FileMapping]) -> bool:
    """Return whether an image is loaded, that is, its code segment is mapped where its program headers place it.

    A process may also map an ELF file only to read it.
    """
    start = image.code_ranges()[0][0]
    return any(mapping.start <= start < mapping.end and mapping.path == path for mapping in mappings)
