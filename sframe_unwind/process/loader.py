"""Which objects a process has loaded, by the files that it had mapped and by the dynamic linker's list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial

from sframe_unwind.address import page_start
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.image.elf_image import Image, read_image
from sframe_unwind.image.link_map import AT_PHDR, EXECUTABLE, loaded_images
from sframe_unwind.memory import read_c_string
from sframe_unwind.process.base import FileMapping
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import Files
from sframe_unwind.process.memory import Memory
from sframe_unwind.process.objects import LoadedObject, build_id_in

AT_EXECFN = 31
"""Key of the auxiliary vector: address of the path that the process was started by."""

_MAX_PATH = 4096
"""``PATH_MAX``, in bytes."""


class MappedFile:
    """A file that was mapped; it is looked for when somebody first wants it.

    :param path: where it was.
    :param base: where its first byte is in memory.
    :param given: the file, where the user says which it is.
    """

    def __init__(
        self, path: str, base: int, arch: Arch, memory: Memory, files: Files, given: ElfFile | None = None
    ) -> None:
        self.path = path
        self.base = base
        self._arch = arch
        self._memory = memory
        self._files = files
        self._given = given

    @cached_property
    def file(self) -> ElfFile | None:
        """The file, ``None`` where it is not found."""
        read = self._memory.read_saved
        try:
            build_id = build_id_in(read_image(read, self.base), read, self._arch.byteorder)
        except SFrameError:
            build_id = ""  # its first page was not saved
        if self._given:
            self._files.check(self._given, build_id)
            return self._given
        return self._files.find(self.path, build_id)

    def read(self, start: int, offset: int, size: int) -> bytes:
        """Return bytes from ``start`` plus ``offset`` of the file on, as far as it is found and has them."""
        return self.file.read(start + offset, size) if self.file else b""


class Loader:
    """Finds the objects of one process, and adds their files to its memory.

    :param files: where to look for them.
    :param given: the executable, where the user says which it is.
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
        """Known once the objects were asked for; ``None`` where the process does not tell."""

    def objects(self, mappings: Sequence[FileMapping]) -> list[LoadedObject]:
        """Return the objects.

        :param mappings: of files; empty where they are not known.
        """
        found: dict[int, LoadedObject] = {}
        for file in self._mapped(mappings):
            try:
                image = read_image(self._memory.read, file.base)
            except SFrameError:
                continue  # data
            if image.code_ranges() and _is_loaded(image, file.path, mappings):
                found[file.base] = self._object(file, image)
        listed: dict[int, MappedFile] = {}

        def provide(name: str, address: int) -> bool:
            listed[address] = self._listed(name, address)
            return self._map_segments(listed[address])

        for name, image, address in loaded_images(self._memory.read, self._auxv, self._arch.byteorder, provide):
            if address not in found:
                found[address] = self._object(listed.get(address) or self._listed(name, address), image)
        return list(found.values())

    def _object(self, file: MappedFile, image: Image) -> LoadedObject:
        return LoadedObject(file.path, image, self._arch, self._memory.read, self._files, lambda: file.file)

    def _file(self, path: str, base: int, is_executable: bool) -> MappedFile:
        given = self._given if is_executable else None
        file = MappedFile(path, base, self._arch, self._memory, self._files, given)
        if is_executable:
            self.executable = file
        return file

    def _mapped(self, mappings: Sequence[FileMapping]) -> list[MappedFile]:
        """Add the mapped parts of all files to the memory, and return the files."""
        headers = self._auxv.get(AT_PHDR, 0)
        executable = next((mapping.path for mapping in mappings if mapping.start <= headers < mapping.end), None)
        files: dict[str, MappedFile] = {}
        found = []
        for mapping in mappings:
            if mapping.offset == 0:
                files[mapping.path] = self._file(mapping.path, mapping.start, mapping.path == executable)
                found.append(files[mapping.path])
            if mapping.path in files:
                read = partial(files[mapping.path].read, mapping.offset)
                self._memory.add_mapped(mapping.start, mapping.end, read)
        return found

    def _listed(self, name: str, address: int) -> MappedFile:
        """Return the file of an image that the dynamic linker, or the kernel, names."""
        if name != EXECUTABLE:
            return self._file(name, address, is_executable=False)
        if self.executable is not None:
            return self.executable
        name = self._given.path if self._given else name
        with suppress(SFrameError):
            name = read_c_string(self._memory.read, self._auxv.get(AT_EXECFN, 0), _MAX_PATH) or name
        return self._file(name, address, is_executable=True)

    def _map_segments(self, file: MappedFile) -> bool:
        """Add what is loaded of a file to the memory; return whether it is found."""
        if file.file is None or not file.file.loads:
            return False
        first = min(file.file.loads)
        bias = file.base - (first.address - page_start(first.offset))
        for load in file.file.loads:
            start = load.address + bias
            self._memory.add_mapped(start, start + load.size, partial(file.read, load.offset))
        return True


def _is_loaded(image: Image, path: str, mappings: Sequence[FileMapping]) -> bool:
    """Return whether the code of an image is where its file is mapped: it may have been mapped to look into it."""
    start = image.code_ranges()[0][0]
    return any(mapping.start <= start < mapping.end and mapping.path == path for mapping in mappings)
