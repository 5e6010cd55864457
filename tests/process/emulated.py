"""Simulates a running process of another machine from the emulator's core file, as Linux would show it.

The registers are the bytes of its notes, as in ptrace.  Memory consists of the saved parts, and of the mapped files,
since the emulator saves only changed memory.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from elftools.elf.elffile import ELFFile

from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.process import live
from sframe_unwind.process.core_file import open_core
from sframe_unwind.process.files import Files
from sframe_unwind.process.loader import Loader
from sframe_unwind.process.ptrace import NT_FPREGSET, NT_PRSTATUS

PROCESS = 1
NT_AUXV = 6
PRSTATUS_PID, PRSTATUS_REGISTERS = 32, 112
"""Offsets in `struct elf_prstatus` of 64-bit machines, in bytes."""


def notes_of(elf: ELFFile) -> Iterator[tuple[int, bytes]]:
    """Yield the types and contents of a core file's notes, in order."""
    mark = "<" if elf.little_endian else ">"
    for segment in elf.iter_segments("PT_NOTE"):
        data, at = segment.data(), 0
        while at + 12 <= len(data):
            name_size, size, kind = struct.unpack_from(f"{mark}3I", data, at)
            start = at + 12 + (name_size + 3) // 4 * 4
            yield kind, data[start : start + size]
            at = start + (size + 3) // 4 * 4


class Machine:
    """The kernel's interface of another machine for the process in a core file."""

    def __init__(self, core: Path, executable: Path, root: str) -> None:
        self._executable = executable
        opened = open_core(core)
        files = Files([root], [], (opened.arch.elf_machine, opened.arch.byteorder), print, False)
        Loader(opened.arch, opened.auxv, opened.memory, files, files.given(str(executable))).objects(opened.mappings)
        self._memory = opened.memory
        with core.open("rb") as stream:
            elf = ELFFile(stream)
            mark = "<" if elf.little_endian else ">"
            self._maps = b"".join(map(_line, elf.iter_segments("PT_LOAD")))
            self.registers: dict[int, dict[int, bytes]] = {}
            thread = 0
            for kind, data in notes_of(elf):
                if kind == NT_PRSTATUS:
                    (thread,) = struct.unpack_from(f"{mark}I", data, PRSTATUS_PID)
                    self.registers[thread] = {NT_PRSTATUS: data[PRSTATUS_REGISTERS:]}
                elif kind == NT_FPREGSET:
                    self.registers[thread][NT_FPREGSET] = data
                elif kind == NT_AUXV:
                    self._auxv = struct.unpack(f"{mark}{len(data) // 8}Q", data)

    def open(self, name: str) -> BinaryIO:
        """Open a file of `/proc/PID`."""
        if name == "exe":
            return self._executable.open("rb")
        if name == "auxv":
            return io.BytesIO(struct.pack(f"={len(self._auxv)}Q", *self._auxv))
        if name == "maps":
            return io.BytesIO(self._maps)
        assert name == "mem", name
        return io.BytesIO()

    def read(self, address: int, size: int) -> bytes:
        """Read memory, as far as it is mapped."""
        try:
            return self._memory.read(address, size)
        except MemoryReadError:
            return b""


def _line(segment: Any) -> bytes:
    start, end = segment["p_vaddr"], segment["p_vaddr"] + segment["p_memsz"]
    letters = "".join(letter if segment["p_flags"] & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
    return f"{start:x}-{end:x} {letters}p 00000000 00:00 0 \n".encode()


def emulate(patch: pytest.MonkeyPatch, arch: Arch, core: Path, executable: Path, root: str) -> None:
    """Simulate that process 1 is the one in a core file, on a machine of its architecture.

    :param root: folder with the libraries.
    """
    machine = Machine(core, executable, root)

    class Stopped:
        """Stopped threads; they are always stopped."""

        def __init__(self, process: int, thread: int) -> None:
            assert process == PROCESS
            self.threads = [thread]

        def __enter__(self) -> Stopped:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def register_set(self, thread: int, kind: int) -> bytes:
            return machine.registers[thread].get(kind, b"")

    patch.setattr(live, "_machine", lambda: arch.uname)
    patch.setattr(live, "Stopped", Stopped)
    patch.setattr(live, "thread_ids", lambda _: sorted(machine.registers))
    patch.setattr(live, "status", lambda *_: {"State": "S (sleeping)", "VmSize": "1 kB", "Name": executable.name})
    patch.setattr(live, "field", lambda *_: executable.name)
    patch.setattr(live.Live, "_open", machine.open)
    patch.setattr(live.Live, "_read", machine.read)
