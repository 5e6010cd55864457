"""A running process, through ``/proc`` and ``ptrace``."""

from __future__ import annotations

import os
import platform
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from elftools.elf.enums import ENUM_E_MACHINE

from sframe_unwind.address import page_start
from sframe_unwind.arch import ARCHES, Arch
from sframe_unwind.errors import MemoryReadError, ProcessError
from sframe_unwind.process.base import FileMapping, Registers, Thread
from sframe_unwind.process.memory import Memory
from sframe_unwind.process.ptrace import NT_FPREGSET, NT_PRSTATUS, Stopped, status
from sframe_unwind.process.registers import float_registers, general_registers

_ADDRESS_SPACE = 1 << 63
_LINE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \d+ *(.*)$", re.MULTILINE)
_DELETED = b" (deleted)"
_RED_ZONE = 128
"""Bytes below SP that an AMD64 function may use."""
_LONGEST_COPY = 1 << 20
"""Bytes of one stack that are copied; who has more on it is stopped once more."""


class Mapping(NamedTuple):
    """A line of ``/proc/PID/maps``."""

    start: int
    end: int
    writable: bool
    offset: int
    path: str
    """Empty for anonymous memory; ``[stack]`` and the like are names as well."""


class Mappings:
    """The mappings of a process, in the order of their addresses."""

    def __init__(self, text: bytes) -> None:
        self._mappings = [
            Mapping(int(start, 16), int(end, 16), flags[1:2] == b"w", int(offset, 16), _unescaped(name))
            for start, end, flags, offset, name in _LINE.findall(text)
        ]
        self._starts = [mapping.start for mapping in self._mappings]

    def find(self, address: int) -> Mapping | None:
        """Return the mapping that contains an address."""
        at = bisect_right(self._starts, address) - 1
        return self._mappings[at] if at >= 0 and address < self._mappings[at].end else None

    def files(self) -> list[FileMapping]:
        """Return the mappings of files."""
        return [
            FileMapping(mapping.start, mapping.end, mapping.offset, mapping.path)
            for mapping in self._mappings
            if mapping.path.startswith("/")
        ]


def _unescaped(name: bytes) -> str:
    name = name.replace(rb"\012", b"\n")
    return os.fsdecode(name[: -len(_DELETED)] if name.endswith(_DELETED) else name)


class StackCopy:
    """The memory of a process with its stacks as they were when it stood still."""

    def __init__(self, memory: Memory, mappings: Mappings) -> None:
        self._memory = memory
        self._mappings = mappings
        self._copies: list[tuple[int, bytes]] = []
        self.missed = False
        """Something was read that was not copied, and that the process may have changed."""

    def copy_stack(self, sp: int) -> None:
        """Copy the stack that a stack pointer points into, from there on outward."""
        mapping = self._mappings.find(sp)
        if mapping is None:
            return
        start = max(mapping.start, page_start(sp - _RED_ZONE))
        try:
            self._copies.append((start, self._memory.read(start, min(mapping.end - start, _LONGEST_COPY))))
        except MemoryReadError:
            return  # it cannot be read later either

    def read(self, address: int, size: int) -> bytes:
        """Read ``size`` bytes at an address.

        :raises MemoryReadError: they are not all there.
        """
        for start, data in self._copies:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        mapping = self._mappings.find(address)
        self.missed = self.missed or (mapping is not None and mapping.writable)
        return self._memory.read(address, size)


class Snapshot(NamedTuple):
    """What was taken of a process while it stood still."""

    threads: tuple[Thread, ...]
    mappings: Mappings
    snapshot: StackCopy


class Live:
    """A process that runs.

    :param process: its id.
    :raises ProcessError: there is none, it has no memory, or it is not of this machine's own ABI.
    """

    def __init__(self, process: int) -> None:
        self.id = process
        self._check_state()
        self.arch = self._find_arch()
        self.auxv = dict(struct.iter_unpack("=QQ", self._contents("auxv")))
        self._stream = self._open("mem")
        self.memory = Memory()
        self.memory.add_saved(0, _ADDRESS_SPACE, self._read)

    def take(self) -> Snapshot:
        """Stop the process, copy registers and stacks, and let it go on.

        :raises ProcessError: that is not permitted, or the process is gone.
        """
        with Stopped(self.id) as stopped:
            mappings = Mappings(self._contents("maps"))
            registers = {thread: self._registers(stopped, thread) for thread in stopped.threads}
            snapshot = StackCopy(self.memory, mappings)
            for found in registers.values():
                snapshot.copy_stack(found[self.arch.sp])
        if not registers:
            raise ProcessError(f"process {self.id}: it has ended, or none of its threads stops")
        return Snapshot(tuple(self._thread(*item) for item in registers.items()), mappings, snapshot)

    @contextmanager
    def stopped(self, thread: int) -> Iterator[Thread | None]:
        """Have one thread stand still in the ``with`` block; ``None`` where it does not stop or has ended."""
        with Stopped(self.id, thread) as stopped:
            registers = {found: self._registers(stopped, found) for found in stopped.threads}
            yield next((self._thread(*item) for item in registers.items()), None)

    def _registers(self, stopped: Stopped, thread: int) -> dict[int, int]:
        found = general_registers(self.arch, stopped.register_set(thread, NT_PRSTATUS))
        if self.arch.float_registers:
            found.update(float_registers(self.arch, stopped.register_set(thread, NT_FPREGSET)))
        return found

    def _thread(self, thread: int, registers: Registers) -> Thread:
        return Thread(thread, status(self.id, thread).get("Name", ""), "", registers)

    def _check_state(self) -> None:
        found = status(self.id, self.id)
        if not found:
            raise ProcessError(f"process {self.id}: no such process")
        if found["State"][:1] in "XZ":
            raise ProcessError(f"process {self.id}: it has ended, and its parent has not yet asked how (zombie)")
        if "VmSize" not in found:
            raise ProcessError(f"process {self.id}: it has no memory of its own (a kernel thread)")

    def _find_arch(self) -> Arch:
        """Return the ABI of the process.

        :raises ProcessError: it is not this machine's, which alone the kernel gives the registers of.
        """
        with self._open("exe") as stream:
            head = stream.read(20)
        arch = next((arch for arch in ARCHES if arch.uname == platform.machine()), None)
        if arch is None or (head[4:6], head[18:20]) != _identity(arch):
            raise ProcessError(f"process {self.id}: its program is not one of 64 bits for {platform.machine()}")
        return arch

    def _open(self, name: str) -> BinaryIO:
        try:
            return Path(f"/proc/{self.id}/{name}").open("rb", buffering=0)
        except PermissionError as error:
            raise ProcessError(f"process {self.id}: not permitted") from error
        except OSError as error:
            raise ProcessError(f"process {self.id}: {error.strerror or error}") from error

    def _contents(self, name: str) -> bytes:
        with self._open(name) as stream:
            return stream.read()

    def _read(self, address: int, size: int) -> bytes:
        try:
            return os.pread(self._stream.fileno(), size, address)
        except OSError:
            return b""


def _identity(arch: Arch) -> tuple[bytes, bytes]:
    """Return class and byte order, and the machine, as ELF headers of an ABI have them."""
    order = 1 if arch.byteorder == "little" else 2
    return bytes([2, order]), ENUM_E_MACHINE[arch.elf_machine].to_bytes(2, arch.byteorder)
