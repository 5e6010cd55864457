"""The modules of the current program space, from ``info files``, or from the memory of the process.

GDB's Python interface has no load addresses.  ``info files`` lists the sections of the executable, the shared
libraries and the vDSO at their addresses in memory, for a process, a core file and a remote target alike.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Callable

import gdb

from gdb_plugin.interface.output import output_of
from gdb_plugin.interface.texts import path_of, path_text
from gdb_plugin.process.memory import read
from sframe_unwind.address import page_start
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.modules import TEXT, SectionRange, code_loader, loaded_module
from sframe_unwind.errors import SFrameError
from sframe_unwind.image.eh_frame import eh_frame_in
from sframe_unwind.image.elf_image import build_id_in
from sframe_unwind.image.link_map import EXECUTABLE, Loaded, loaded_image_at, loaded_images
from sframe_unwind.kernel.modules import module_name
from sframe_unwind.memory import STRUCT_MARKS, ChunkCache
from sframe_unwind.unwind.modules import Module

if TYPE_CHECKING:
    from sframe_unwind.cfi.section import PlacedCfi
    from sframe_unwind.debugger.kernel_modules import ModulePlaces

_LINE = re.compile(r"^\t0x([0-9a-f]+) - 0x([0-9a-f]+) is (\S+)(?: in (.*))?$", re.MULTILINE)
_EXECUTABLE = re.compile(r"^\t`(.*)', file type", re.MULTILINE)
_OF_CORE = re.compile(r"load\d+[a-z]?$")
"""Names of the pieces of memory in a core file that do not belong to a module."""
_CODE = re.compile(r"(\.\w+)?\.text|\.plt|\.iplt|\.init$|\.fini$")
"""Names of sections with code.  Linux kernels also have code in ``.head.text``, ``.init.text`` and others."""
_REMOTE = "target:"
"""Prefix of the path of a file that GDB reads through the server of a remote target."""
_AUXV = re.compile(r"^(\d+)\s.*\s(0x[0-9a-f]+|\d+)$", re.MULTILINE)


def list_modules(arch: Arch, may_execute: bool, places: ModulePlaces | None = None) -> list[Module]:
    """Return the modules of the current program space.

    :param places: finds the modules of the Linux kernel, if the inferior is one.
    :param may_execute: whether a GDB command can be run; otherwise the list comes from the memory of the process.
    """
    if not may_execute:
        return discover_modules(arch, may_execute)
    text = output_of("info files")
    files = _EXECUTABLE.findall(text)  # a core file comes before its executable
    return [_module(name, sections, arch, places) for name, sections in _groups(text, files[-1] if files else "")]


def find_module(arch: Arch, may_execute: bool, address: int) -> Module | None:
    """Return the shared library at an address, without listing all modules.

    :returns: ``None``: GDB names no library there, or it is not found in memory.
    """
    path = path_text(lambda: gdb.solib_name(address))
    if not path:
        return None
    found = loaded_image_at(read, auxiliary_vector(arch, may_execute), arch.byteorder, address)
    return None if found is None else _of_image(arch, found, path)


def discover_modules(arch: Arch, may_execute: bool) -> list[Module]:
    """Return the modules that the process has in memory, whether or not GDB has their files."""
    vector = auxiliary_vector(arch, may_execute)
    return [_of_image(arch, image) for image in loaded_images(ChunkCache(read).read, vector, arch.byteorder)]


def _of_image(arch: Arch, loaded: Loaded, path: str = "") -> Module:
    name, image = loaded.name, loaded.image
    if name == EXECUTABLE:
        name = path_of(gdb.current_progspace()) or EXECUTABLE
    load, load_cfi = partial(image.sframe_section, read), partial(eh_frame_in, image, read, arch)
    load_build_id = partial(build_id_in, image, read, arch.byteorder)

    def load_debug_cfi() -> Sequence[PlacedCfi]:
        from sframe_unwind.debugger.debug_frame import placed_by_bias

        return placed_by_bias(_debug_files(path or name, load_build_id), arch, image.bias)

    def load_rewriter() -> str:
        from sframe_unwind.debugger.rewriters import rewriter_of_files

        return rewriter_of_files(_debug_files(path or name, load_build_id), arch)

    module = Module(
        *(name, image.code_ranges(), load, load_cfi),
        load_build_id=load_build_id,
        load_debug_cfi=load_debug_cfi,
        load_rewriter=load_rewriter,
    )
    module.load_code = code_loader(lambda: _debug_files(path or name, load_build_id), lambda: image.bias, arch, read)
    return module


def _debug_files(name: str, build_id_of: Callable[[], str]) -> list[DebugFile]:
    """Return the files from which GDB has the ``.debug_frame`` of a module, in the order in which it searches them.

    The parameters are those of :func:`objfiles_of`.
    """
    return debug_files(objfiles_of(name, build_id_of))


def objfiles_of(name: str, build_id_of: Callable[[], str]) -> list[gdb.Objfile]:
    """Return the files that GDB has read for a module, in the order in which it searches them.

    GDB puts a separate debug file before the file that it belongs to (``program_space::add_objfile``).  A file that the
    user names (``symbol-file``) belongs to no other; its build ID shows which module it describes.

    :param name: the path of the module, as GDB has it.
    :param build_id_of: returns the build ID of the module, empty where there is none; raises :class:`SFrameError`.
    """
    apart, own, named = [], [], []
    for objfile in gdb.objfiles():
        if objfile.owner is not None:
            if path_of(objfile.owner) == name:
                apart.append(objfile)
        elif path_of(objfile) == name:
            own.append(objfile)
        else:
            named.append(objfile)
    if not own and named:
        with suppress(SFrameError):  # there is no ELF header in memory
            build_id = build_id_of()
            own = [objfile for objfile in named if build_id and objfile.build_id == build_id]
    return [*apart, *own]


def debug_files(objfiles: Iterable[gdb.Objfile]) -> list[DebugFile]:
    """Return the places on this machine of files that GDB has read."""
    return [
        DebugFile(path, objfile.build_id or "")
        for objfile in objfiles
        if path_of(objfile)
        for path in _local_paths(path_of(objfile), objfile.build_id or "")
    ]


def _local_paths(name: str, build_id: str) -> list[str]:
    """Return the paths where this machine may have a file that GDB has read.

    GDB reads files of a remote target through its server, which Python cannot do.  With a build ID, a copy on this
    machine is recognised as the same file.
    """
    if not name.startswith(_REMOTE):
        return [name]
    if not build_id:
        return []
    folders = str(gdb.parameter("debug-file-directory") or "").split(os.pathsep)
    debug_file = Path(".build-id", build_id[:2], f"{build_id[2:]}.debug")
    return [name[len(_REMOTE) :], *(str(folder / debug_file) for folder in map(Path, filter(None, folders)))]


def auxiliary_vector(arch: Arch, may_execute: bool) -> dict[int, int]:
    """Return the auxiliary vector of the current inferior; empty: it is not available."""
    inferior = gdb.selected_inferior()
    if inferior.connection is not None and inferior.connection.type == "native":
        try:
            content = Path(f"/proc/{inferior.pid}/auxv").read_bytes()
        except OSError:
            return {}
        pair = struct.Struct(STRUCT_MARKS[arch.byteorder] + "QQ")
        return dict(pair.iter_unpack(content[: len(content) // pair.size * pair.size]))
    try:
        text = output_of("info auxv") if may_execute else ""
    except gdb.error:
        return {}
    return {int(key): int(value, 0) for key, value in _AUXV.findall(text)}


def _module(name: str, sections: dict[str, SectionRange], arch: Arch, places: ModulePlaces | None) -> Module:
    placed: dict[str, SectionRange] = {}
    if places is not None:
        # GDB places sections with unknown addresses one after the other, from 0 on.
        sizes = {section: end - start for section, (start, end) in sections.items()}
        placed = places.sections(name, sizes, sections[TEXT].start if TEXT in sections else None)
        sections = placed or sections
    elif module_name(name) is not None:  # GDB has not looked for the kernel yet
        sections = {key: place for key, place in sections.items() if arch.may_be_kernel(place.start)} or sections
    start, end = min(place.start for place in sections.values()), max(place.end for place in sections.values())
    code = [place for section, place in sections.items() if _CODE.match(section)]
    code_size = sum(place.end - place.start for place in code)
    ranges = code if placed else [(start, end)]
    find_files = partial(_debug_files, name)
    return loaded_module(
        name=name,
        ranges=ranges,
        sections=sections,
        header=page_start(start),
        read=read,
        arch=arch,
        code_size=code_size,
        debug_files=find_files,
        code_files=find_files,
    )


def _groups(text: str, executable: str) -> Iterator[tuple[str, dict[str, SectionRange]]]:
    current = ""
    sections: dict[str, SectionRange] = {}
    for start, end, section, name in dict.fromkeys(_LINE.findall(text)):  # a remote target lists the executable twice
        if not name and _OF_CORE.match(section):
            continue
        # The same section again means that the file is loaded a second time (dlmopen).
        again = section in sections and section.startswith((".sframe", ".text", ".dynamic"))
        if sections and (name != current or again):
            yield current or executable, sections
            sections = {}
        current = name
        sections[section] = SectionRange(int(start, 16), int(end, 16))
    if sections:
        yield current or executable, sections
