"""The memory of a process in the core's terms.

Core files often lack memory that is equal to the files of the process: the kernel leaves out pages that were never
written (``coredump_filter``, see core(5)), and so do ``process save-core`` and minidumps.
"""

from __future__ import annotations

import lldb

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.image.elf_image import build_id_in, read_image
from sframe_unwind.memory import ReadMemory

_MAGIC = b"\x7fELF"


def reader(process: lldb.SBProcess) -> ReadMemory:
    """Return a function that reads bytes of a process, or of the files that it has mapped without write access."""
    files = _Files(process)

    def read(address: int, size: int) -> bytes:
        data = _read_process(process, address, size) or files.read(address, size)
        if data is None or len(data) != size:
            raise MemoryReadError(address, size)
        return data

    return read


def in_file(section: lldb.SBSection, offset: int, size: int) -> bytes | None:
    """Return bytes of a section from its file; ``None``: the file does not have all of them.

    This waits for none of LLDB's locks on the target.

    :param offset: offset of the first byte in the section, in bytes.
    """
    error = lldb.SBError()
    data = section.GetSectionData(offset, size)
    contents = data.ReadRawData(error, 0, size) if data.GetByteSize() == size else None
    return bytes(contents) if contents is not None and error.Success() else None


def _read_process(process: lldb.SBProcess, address: int, size: int) -> bytes | None:
    error = lldb.SBError()
    data = process.ReadMemory(address, size, error) if 0 <= address < 1 << 64 else None
    return bytes(data) if error.Success() and data is not None and len(data) == size else None


class _Files:
    """The contents of a process's modules according to their files, where the process cannot have changed them.

    :param process: a stopped process.
    """

    def __init__(self, process: lldb.SBProcess) -> None:
        self._process = process
        self._target = process.GetTarget()
        self._fits: dict[int, bool] = {}
        """By address of a module's ELF header: whether the file that LLDB uses for it is the one that was loaded."""

    def read(self, address: int, size: int) -> bytes | None:
        """Return the bytes of a file at an address; ``None``: they are not known."""
        if not 0 <= address < 1 << 64:
            return None
        place = self._target.ResolveLoadAddress(address)
        section = place.GetSection()
        if not section.IsValid() or not self._is_right(place.GetModule()):
            return None
        while section.GetParent().IsValid():  # LLDB's sections lie in segments, which can be read across sections
            section = section.GetParent()
        if section.GetPermissions() & lldb.ePermissionsWritable:
            return None
        return in_file(section, address - section.GetLoadAddress(self._target), size)

    def _is_right(self, module: lldb.SBModule) -> bool:
        """Return whether the file is the loaded one, by the ELF header and the build ID in memory.

        LLDB 22 uses a file with another build ID, and places it by its entry point.  If memory lacks the header or the
        build ID, the file is taken for the right one, as in LLDB.
        """
        header = module.GetObjectFileHeaderAddress().GetLoadAddress(self._target)
        if header not in self._fits:
            self._fits[header] = self._fits_memory(module, header)
        return self._fits[header]

    def _fits_memory(self, module: lldb.SBModule, header: int) -> bool:
        def read(address: int, size: int) -> bytes:
            data = _read_process(self._process, address, size)
            if data is None:
                raise MemoryReadError(address, size)
            return data

        order: ByteOrder = "big" if self._target.GetByteOrder() == lldb.eByteOrderBig else "little"
        try:
            if read(header, len(_MAGIC)) != _MAGIC:
                return False
            return build_id_in(read_image(read, header), read, order) in ("", build_id_of(module))
        except SFrameError:
            return True


def build_id_of(module: lldb.SBModule) -> str:
    """Return the build ID of a module in hexadecimal digits, or the number that LLDB uses in place of a missing one."""
    return (module.GetUUIDString() or "").replace("-", "").lower()
