"""A Linux kernel in a crash dump, read by drgn: its memory, symbols, types, modules, and the registers of processors.

drgn reads ELF dumps and kdump-compressed ones, and translates the kernel's addresses, also where it was moved (KASLR).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sframe_unwind.arch import Arch, of_elf
from sframe_unwind.errors import FileError, MemoryReadError, MissingExtraError
from sframe_unwind.kernel.modules import module_name
from sframe_unwind.kernel.types import Member, Type
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.live_kernel import KCORE, check_readable
from sframe_unwind.process.target import SymbolMatch
from sframe_unwind.process.vmcore import LoadedModule
from sframe_unwind.source.debug_info import Place

try:
    import drgn
except ImportError:  # it is in an extra
    drgn = None


_NOTE_HEADER = 12
"""Size of the sizes and the type of a note, in bytes."""
_PHYSICAL = 1 << 48
"""Size of an address range that is larger than any memory, in bytes."""


class DrgnKernel:
    """A kernel that drgn has opened.

    :param program: a ``drgn.Program`` with the kernel's debug information.
    """

    def __init__(self, program: Any) -> None:
        self.program = program
        # Stacks of a kernel have many frames in common, and each of these lookups takes a millisecond.
        self.function_at = cache(self._function_at)
        self.places = cache(self._places)

    def read(self, address: int, size: int) -> bytes:
        """Return memory of the kernel.

        :raises MemoryReadError: it is not mapped, or the dump does not have it.
        """
        try:
            return bytes(self.program.read(address, size))
        except (drgn.FaultError, OverflowError) as error:
            raise MemoryReadError(address, size) from error

    def symbol(self, name: str) -> int | None:
        """Return the address of a symbol of the kernel; ``None``: there is none."""
        try:
            return int(self.program.symbol(name).address)
        except LookupError:
            return None

    def structure(self, tag: str) -> Type | None:
        """Return a structure from the debug information; ``None``: there is none."""
        try:
            return _type(self.program.type(f"struct {tag}"))
        except LookupError:
            return None

    def _function_at(self, address: int) -> SymbolMatch | None:
        """Return the function that contains an address, of the kernel or a module; ``None``: no symbol covers it."""
        try:
            found = self.program.symbol(address)
        except LookupError:
            return None
        return SymbolMatch(found.name, address - found.address)

    def _places(self, address: int) -> list[Place]:
        """Return the inlined functions and the function at an address, innermost first, with their lines."""
        try:
            found = self.program.source_location(address)
        except LookupError:
            return []
        return [Place(place.name() or "", place.filename, place.line) for place in found]

    def running_registers(self, task: int, arch: Arch) -> dict[int, int]:
        """Return the registers of a task that ran on a processor, by DWARF number; empty: the dump does not have them.

        :param task: address of its ``struct task_struct``.
        """
        try:
            frame = self.program.stack_trace(drgn.Object(self.program, "struct task_struct *", task))[0]
        except (LookupError, ValueError):
            return {}
        known = frame.registers()
        found = {number: known[name] for number, name in arch.register_names.items() if name in known}
        found[arch.pc] = frame.pc
        return found if {arch.pc, arch.sp, arch.fp} <= found.keys() else {}

    @property
    def main_file(self) -> tuple[str, int] | None:
        """The path of the kernel's file, and the kernel's displacement in bytes; ``None``: no file fits the dump."""
        main = self.program.main_module()
        return (main.debug_file_path, main.debug_file_bias) if main.debug_file_path else None

    def modules(self) -> Iterator[LoadedModule]:
        """Yield the loaded modules."""
        for module in self.program.modules():
            if isinstance(module, drgn.RelocatableModule):
                path, addresses = module.debug_file_path or "", dict(module.section_addresses)
                yield LoadedModule(module.name, path, addresses, tuple(module.address_ranges or ()))


def open_dump(path: str, kernel: str, modules: Sequence[str]) -> DrgnKernel:
    """Open a crash dump of a Linux kernel, or the running kernel.

    :param path: of the dump; ``/proc/kcore`` is the running kernel's memory.
    :param kernel: path of its ``vmlinux`` with debug information.
    :param modules: paths of files that may belong to its modules (``.ko``).
    :raises FileError: a file cannot be read, or the dump is not of a Linux kernel.
    :raises MissingExtraError: drgn is not installed.
    """
    if drgn is None:
        raise MissingExtraError("drgn", "kernel")
    if path == KCORE:
        check_readable()
    for file in (kernel,) if path == KCORE else (path, kernel):
        if not Path(file).is_file():
            raise FileError(f"{file}: not a file")
    try:
        program = _program(path, of_elf(*ElfFile(kernel).machine))
        if not program.flags & drgn.ProgramFlags.IS_LINUX_KERNEL:
            raise FileError(
                f"{path}: not the dump of a Linux kernel, or without its note VMCOREINFO"
                " (QEMU writes it with -device vmcoreinfo)"
            )
        program.load_debug_info([kernel])
        # drgn opens each file that it is given, and warns about those of modules that are not loaded.
        loaded = {module.name for module in program.modules() if isinstance(module, drgn.RelocatableModule)}
        found = [file for file in modules if module_name(file) in loaded]
        if found:
            program.load_debug_info(found)
    except (OSError, ValueError, drgn.MissingDebugInfoError) as error:
        raise FileError(f"{path}: {error}") from error
    except Exception as error:
        # drgn raises a plain exception if libkdumpfile fails; any other type is a bug.
        if type(error) is not Exception:
            raise
        raise FileError(f"{path}: drgn cannot read the dump: {error}") from error
    return DrgnKernel(program)


def _program(path: str, arch: Arch | None) -> Any:
    """Return a program for a dump of a kernel for an architecture; ``None``: drgn determines it."""
    platform = _platform(arch)
    program = drgn.Program(platform)
    program.set_core_dump(path)
    place = arch.linux_kernel.vmcore_info if arch is not None and arch.linux_kernel is not None else None
    if program.flags & drgn.ProgramFlags.IS_LINUX_KERNEL or arch is None or place is None or platform is None:
        return program
    # QEMU writes neither the note VMCOREINFO nor physical addresses for such a machine.  The kernel has the note's
    # address, and the virtual addresses of the dump are the physical ones.
    try:
        note = int.from_bytes(program.read(place, 8), arch.byteorder)
        name_size, size, _ = struct.unpack(STRUCT_MARKS[arch.byteorder] + "III", program.read(note, _NOTE_HEADER))
        found = program.read(note + _NOTE_HEADER + (name_size + 3 & ~3), size)
    except drgn.FaultError:
        return program
    if not found.startswith(b"OSRELEASE="):
        return program
    kernel = drgn.Program(platform, vmcoreinfo=found)
    kernel.set_core_dump(path)
    kernel.add_memory_segment(
        0, _PHYSICAL, lambda address, count, _offset, _physical: program.read(address, count), True
    )
    return kernel


def _platform(arch: Arch | None) -> Any:
    """Return an architecture in drgn's terms; ``None``: drgn determines it.

    Kdump-compressed dumps of AArch64 from QEMU lack it.
    """
    found = getattr(drgn.Architecture, arch.name.upper(), None) if arch is not None else None
    return None if found is None else drgn.Platform(found)


def _type(found: Any) -> Type:
    plain = found.unaliased()
    compound = plain.kind in (drgn.TypeKind.STRUCT, drgn.TypeKind.UNION, drgn.TypeKind.CLASS)

    def members() -> list[Member]:
        listed = plain.members if compound and plain.members is not None else ()
        return [Member(member.name or "", member.bit_offset // 8, _type(member.type)) for member in listed]

    def element() -> Type | None:
        return _type(plain.type) if plain.kind == drgn.TypeKind.ARRAY else None

    try:
        size = drgn.sizeof(plain)
    except TypeError:  # an incomplete type, as of an array at the end of a structure
        size = 0
    return Type(size, members, element)
