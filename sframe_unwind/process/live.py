"""Reads a running process through ``/proc`` and ``ptrace``."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from sframe_unwind.address import RangeMap, page_start
from sframe_unwind.arch import ARCHES, Arch
from sframe_unwind.elf import machine_number
from sframe_unwind.elf.records import identification
from sframe_unwind.errors import MemoryReadError, ProcessError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.process.base import FileMapping, RegisterValues, Thread
from sframe_unwind.process.memory import Memory
from sframe_unwind.process.not_stopping import RECORD, is_uninterruptible, recorded_registers, still_sleeping
from sframe_unwind.process.ptrace import (
    NT_FPREGSET,
    NT_PRSTATUS,
    Stopped,
    field,
    has_ended,
    not_permitted,
    status,
    thread_ids,
)
from sframe_unwind.process.registers import float_registers, general_registers

_ADDRESS_SPACE = 1 << 63
_LINE = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \d+ *(.*)$", re.MULTILINE)
_DELETED = b" (deleted)"
_MAP_FILES = "/proc/{}/map_files"
"""The folder with a link to the file of each mapping of a process.  Reading a link needs CAP_CHECKPOINT_RESTORE."""
_RED_ZONE = 128
"""Number of bytes below SP that an AMD64 function may use."""
_LONGEST_COPY = 1 << 20
"""Maximum number of bytes to copy of one stack.  A thread with a larger stack is stopped again for its walk."""


class MemoryMapping(NamedTuple):
    """One line of ``/proc/PID/maps``."""

    start: int
    """Start address."""
    end: int
    """End address (exclusive)."""
    writable: bool
    executable: bool
    offset: int
    """File offset of ``start``, in bytes."""
    path: str
    """A path, or a name such as ``[stack]``; empty for anonymous memory.  A file that was deleted keeps its path."""


class Mappings:
    """The mappings of a process, in the order of their addresses.

    :param text: the contents of ``/proc/PID/maps``.
    """

    def __init__(self, text: bytes) -> None:
        found = [
            MemoryMapping(
                start=int(start, 16),
                end=int(end, 16),
                writable=b"w" in flags,
                executable=b"x" in flags,
                offset=int(offset, 16),
                path=_unescaped(name),
            )
            for start, end, flags, offset, name in _LINE.findall(text)
        ]
        self._mappings = RangeMap((mapping.start, mapping.end, mapping) for mapping in found)

    def find(self, address: int) -> MemoryMapping | None:
        """Return the mapping that contains an address, or ``None``."""
        return self._mappings.get(address)

    def is_executable(self, address: int) -> bool:
        """Return whether an address is executable: code of files, or code generated at run time."""
        found = self.find(address)
        return found is not None and found.executable

    def files(self, process: int) -> list[FileMapping]:
        """Return the mappings of files.

        :param process: id of the process; in its ``map_files`` are links to the files.
        """
        return [
            FileMapping(
                *(mapping.start, mapping.end, mapping.offset, mapping.path),
                f"{_MAP_FILES.format(process)}/{mapping.start:x}-{mapping.end:x}",
            )
            for _, _, mapping in self._mappings
            if mapping.path.startswith("/")
        ]


def _unescaped(name: bytes) -> str:
    name = name.replace(rb"\012", b"\n")
    return os.fsdecode(name[: -len(_DELETED)] if name.endswith(_DELETED) else name)


class StackCopy:
    """The memory of a process, with copies of its stacks from when it was stopped."""

    def __init__(self, memory: Memory, mappings: Mappings) -> None:
        self._memory = memory
        self.mappings = mappings
        self._copies: list[tuple[int, bytes]] = []
        self.missed = False
        """Whether a read used writable memory without a copy, which the process may have changed meanwhile."""

    def copy_stack(self, sp: int) -> None:
        """Copy the stack that contains a stack pointer, from the stack pointer outward."""
        mapping = self.mappings.find(sp)
        if mapping is None:
            return
        start = max(mapping.start, page_start(sp - _RED_ZONE))
        try:
            self._copies.append((start, self._memory.read(start, min(mapping.end - start, _LONGEST_COPY))))
        except MemoryReadError:
            return  # a later read fails in the same way

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes at an address.

        :raises MemoryReadError: not all of the bytes can be read.
        """
        for start, data in self._copies:
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        mapping = self.mappings.find(address)
        self.missed = self.missed or (mapping is not None and mapping.writable)
        return self._memory.read(address, size)


class Snapshot(NamedTuple):
    """The state of a process that was copied while it was stopped."""

    threads: tuple[Thread, ...]
    mappings: Mappings
    memory: StackCopy


class Live:
    """A running process.

    :param process: id of the process.
    :raises ProcessError: the process does not exist, is a kernel thread, or has another architecture than this machine.
    """

    def __init__(self, process: int) -> None:
        self.id = process
        self.folder = f"/proc/{process}/task/{self._running_thread()}"
        """The folder of a thread that has not ended; the folder of the process cannot be used if the main thread has
        ended."""
        self.arch = self._find_arch()
        self.auxv = dict(struct.iter_unpack("=QQ", self._contents("auxv")))
        self._stream = self._open("mem")
        self.memory = Memory()
        self.memory.add_saved(0, _ADDRESS_SPACE, self._read)

    def take(self) -> Snapshot:
        """Stop one thread after the other, copy its registers and stack, and let it continue.

        Stopping all threads at once would give stacks of one moment, but would stop a process of 1,000 threads for a
        tenth of a second.

        :raises ProcessError: ``ptrace`` is not permitted, or the process has ended.
        """
        memory = StackCopy(self.memory, Mappings(self._contents("maps")))
        found: dict[int, Thread] = {}
        asleep: list[int] = []
        tried: set[int] = set()
        while new := [thread for thread in thread_ids(self.id) if thread not in tried]:
            tried.update(new)
            for thread in new:
                if is_uninterruptible(self.id, thread):
                    asleep.append(thread)
                else:
                    self._copy(thread, memory, found)
        hung = still_sleeping(self.id, asleep)
        for thread in asleep:
            if thread not in hung:
                self._copy(thread, memory, found)
        for thread in hung:
            found[thread] = self._recorded(thread, memory)
        # By now, there may be other stacks and libraries than when the first thread was copied.
        mappings = memory.mappings = Mappings(self._contents("maps"))
        if not found:
            raise ProcessError(f"process {self.id}: it has ended, or none of its threads stops")
        return Snapshot(tuple(found[thread] for thread in sorted(found)), mappings, memory)

    def _copy(self, thread: int, memory: StackCopy, found: dict[int, Thread]) -> None:
        """Stop a thread, and add it with its registers and a copy of its stack; do nothing if it has ended."""
        with Stopped(self.id, thread) as stopped:
            for number in stopped.threads:
                registers = self._registers(stopped, number)
                memory.copy_stack(registers[self.arch.sp])
                found[number] = self._thread(number, registers)

    def _recorded(self, thread: int, memory: StackCopy) -> Thread:
        """Return a thread that cannot be stopped, with the registers that the kernel tells."""
        registers = recorded_registers(self.arch, self.id, thread)
        if registers:
            memory.copy_stack(registers[self.arch.sp])
            if recorded_registers(self.arch, self.id, thread) != registers:  # it ran while its stack was copied
                registers = {}
        why = "not stopped: state D" + (f", {RECORD}" if registers else "")
        return self._thread(thread, registers)._replace(not_stopped=why)

    @contextmanager
    def stopped(self, thread: int) -> Iterator[Thread | None]:
        """Stop one thread for the ``with`` block; the value is ``None`` if it does not stop or has ended."""
        with Stopped(self.id, thread) as stopped:
            registers = {found: self._registers(stopped, found) for found in stopped.threads}
            yield next((self._thread(*item) for item in registers.items()), None)

    def _registers(self, stopped: Stopped, thread: int) -> dict[int, int]:
        found = general_registers(self.arch, stopped.register_set(thread, NT_PRSTATUS))
        if self.arch.float_registers:
            found.update(float_registers(self.arch, stopped.register_set(thread, NT_FPREGSET)))
        return found

    def _thread(self, thread: int, registers: RegisterValues) -> Thread:
        return Thread(thread, field(self.id, thread, "Name"), "", registers)

    def _running_thread(self) -> int:
        """Return the main thread, or if that has ended, another one.

        :raises ProcessError: there is none, or the process is a kernel thread.
        """
        found = status(self.id, self.id)
        if not found:
            raise ProcessError(f"process {self.id}: no such process")
        if found["State"][:1] in "XZ":
            others = (thread for thread in thread_ids(self.id) if not has_ended(self.id, thread))
            thread = next(others, None)
            if thread is None:
                raise ProcessError(f"process {self.id}: it has ended (zombie)")
            return thread
        if "VmSize" not in found:
            raise ProcessError(f"process {self.id}: it is a kernel thread, which has no memory of its own")
        return self.id

    def _find_arch(self) -> Arch:
        """Return the architecture of the process.

        :raises ProcessError: it is not that of this machine; the kernel provides registers only for that one.
        """
        with self._open("exe") as stream:
            head = stream.read(20)
        machine = _machine()
        arch = next((arch for arch in ARCHES if arch.uname == machine), None)
        if arch is None or (head[4:6], head[18:20]) != _identity(arch):
            raise ProcessError(f"process {self.id}: its program is not a 64-bit program for {machine}")
        return arch

    def _open(self, name: str) -> BinaryIO:
        try:
            return open(f"{self.folder}/{name}", "rb", buffering=0)  # noqa: PTH123  # pathlib takes 4 ms to import
        except PermissionError as error:
            raise ProcessError(f"process {self.id}: {not_permitted(self.id)}") from error
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


def _machine() -> str:
    """Return the kernel's name of this machine; :mod:`platform`, which has it, too, takes 1 ms to import."""
    return os.uname().machine


def _identity(arch: Arch) -> tuple[bytes, bytes]:
    """Return bytes 4 and 5 (class and byte order) and the field ``e_machine`` of an architecture's ELF headers."""
    return identification(arch.byteorder)[4:6], machine_number(arch.elf_machine).to_bytes(2, arch.byteorder)
