"""One inferior in the core's terms: its ABI, registers, memory and modules, kept while they hold."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import gdb

from gdb_plugin.files import discover_modules, list_modules
from gdb_plugin.memory import read
from gdb_plugin.symbols import Symbols
from gdb_plugin.tailcall import may_hide_tail_calls
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.errors import StepError
from sframe_unwind.memory import WordReader
from sframe_unwind.runtime_code.opening import open_run_time_code
from sframe_unwind.unwind.modules import Modules

_ARCHITECTURES = {"i386:x86-64": "amd64", "aarch64": "aarch64", "s390:64-bit": "s390x"}
_UNLIKE = ("ilp32", "x64-32")
"""Variants with 32-bit addresses, which SFrame does not have."""


def arch_of(architecture: gdb.Architecture) -> Arch | None:
    """Return the SFrame ABI of a GDB architecture, ``None`` where SFrame has none for it."""
    name = architecture.name()
    if any(mark in name for mark in _UNLIKE):
        return None
    for prefix, arch in _ARCHITECTURES.items():
        if name.startswith(prefix):
            return BY_NAME[arch + "_be" if arch == "aarch64" and _big_endian(architecture) else arch]
    return None


def _big_endian(architecture: gdb.Architecture) -> bool:
    return int(gdb.Value(b"\1" + bytes(7), architecture.integer_type(64, False))) != 1


class Registers:
    """The registers that unwinding needs, in the words of one of GDB's architectures."""

    def __init__(self, architecture: gdb.Architecture, arch: Arch) -> None:
        # Asking by descriptor spares GDB the search for the name at every read.
        registers = architecture.registers()
        self.by_number = {number: registers.find(name) for number, name in arch.register_names.items()}
        self.pc, self.sp, self.fp = (self.by_number[number] for number in (arch.pc, arch.sp, arch.fp))
        # s390x: GDB asks for the caller's pc by the name of a pseudo register over the program status word.  Where
        # there is none, `find` gives an alias of self.pc, and saving that would cost more than all the others.
        pseudo = next((register for register in architecture.registers() if register.name == "pc"), self.pc)
        self.caller_pc = (self.pc,) if pseudo == self.pc else (pseudo, self.pc)
        self.ra = self.by_number[arch.ra] if arch.ra is not None else None
        self.pac_mask = registers.find("pauth_cmask") if arch.pac_mask else None


class Process:
    """What unwinding needs of one inferior between two changes of its modules.

    :param symbols: finds what the process has registered at run time.
    :param report: shows one line to the user.
    """

    def __init__(
        self, architecture: gdb.Architecture, arch: Arch, symbols: Symbols, report: Callable[[str], None]
    ) -> None:
        self.arch = arch
        self.read_word = WordReader(read, arch.byteorder)
        self.run_time = open_run_time_code(arch, read, symbols.addresses, report)
        self.modules = Modules(
            arch, list_modules(arch), report, partial(discover_modules, arch), self.run_time
        )
        self._registers: dict[gdb.Architecture, Registers] = {}
        self._tail_calls: dict[tuple[int, int], bool] = {}

    def run_time_name(self, pc: int) -> str:
        """Return what the code at an address was registered as at run time; empty for any other code."""
        return self.run_time.name(pc) if self.run_time is not None else ""

    def registers(self, frame: Any) -> Registers:
        """Return the registers of a (pending) frame.

        Frames of one process can differ in their architecture: AArch64 with SVE, where the signal handler's frame
        says that the vectors were of another length.
        """
        architecture = frame.architecture()
        known = self._registers.get(architecture)
        if known is None:
            known = self._registers[architecture] = Registers(architecture, self.arch)
        return known

    def reader(self, frame: Any) -> Callable[[int], int]:
        """Return the function that reads a register of a (pending) frame by its DWARF number."""

        descriptors = self.registers(frame).by_number

        def read_register(number: int) -> int:
            descriptor = descriptors.get(number)
            try:
                if descriptor is not None:
                    return _to_int(frame.read_register(descriptor))
            except gdb.error as error:
                raise StepError(f"{self.arch.register_name(number)} is not known here: {error}") from error
            raise StepError(f"the target has no {self.arch.register_name(number)}")

        return read_register

    def pac_mask(self, frame: Any) -> int | None:
        """Return the bits of a signed return address that are no address, ``None`` where the target does not say."""
        register = self.registers(frame).pac_mask
        if register is None:
            return None
        try:
            return int(frame.read_register(register)) or None
        except gdb.error:
            return None

    def hides_tail_calls(self, start: int, return_address: int) -> bool:
        """Return whether GDB knows of tail calls between a function and its caller; see :mod:`gdb_plugin.tailcall`."""
        key = start, return_address
        known = self._tail_calls.get(key)
        if known is None:
            known = self._tail_calls[key] = may_hide_tail_calls(self.arch, start, return_address)
        return known


def _to_int(value: gdb.Value) -> int:
    """Return the bits of a register: a floating-point register can have been used to save an address (s390x)."""
    if value.type.code == gdb.TYPE_CODE_FLT:
        return int(value.format_string(format="x"), 16)
    return int(value) & ADDRESS_MASK
