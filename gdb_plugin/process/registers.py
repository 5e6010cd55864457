"""The registers of one of GDB's architectures, and the corresponding architecture of SFrame."""

from __future__ import annotations

from typing import Any

import gdb

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.errors import StepError
from sframe_unwind.memory import ReadRegister

_ARCHITECTURES = {"i386:x86-64": "amd64", "aarch64": "aarch64", "s390:64-bit": "s390x"}
_PAC_MASK = "pauth_cmask"
_OF_THREAD = (
    *("fs_base", "gs_base", "acr0", "acr1", "tpidr", "tpidr2"),
    # GDB reads these masks in the caller of each frame whose return address is signed; an error ends the stack.
    *(_PAC_MASK, "pauth_dmask", "pauth_cmask_high", "pauth_dmask_high"),
)
_SIGN_BIT = 1 << 55
"""The bit of an address that selects the half of the address space: AArch64 never signs it."""
_LOWEST_SIGNED = 32
"""The lowest bit of an address that can hold a signature: no address space of Linux is smaller than 36 bits."""
_UNLIKE = ("ilp32", "x64-32")
"""Variants with 32-bit addresses, which SFrame does not have."""


def arch_of(architecture: gdb.Architecture) -> Arch | None:
    """Return the SFrame architecture for one of GDB's; ``None``: SFrame has none for it."""
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
    """The registers that unwinding needs.

    :param architecture: GDB's architecture of a frame.
    :param arch: that architecture in the core's terms.
    """

    def __init__(self, architecture: gdb.Architecture, arch: Arch) -> None:
        # Reading by descriptor saves GDB the search for the name at every read.
        registers = architecture.registers()
        self.by_number = {number: registers.find(name) for number, name in arch.register_names.items()}
        self.pc, self.sp, self.fp = (self.by_number[number] for number in (arch.pc, arch.sp, arch.fp))
        # s390x: GDB asks for the caller's pc by the name of a pseudo register of the program status word.  On other
        # machines, `find` returns an alias of self.pc, and saving that would cost more than all other registers.
        pseudo = next((register for register in architecture.registers() if register.name == "pc"), self.pc)
        self.caller_pc = (self.pc,) if pseudo == self.pc else (pseudo, self.pc)
        self.ra = self.by_number[arch.ra] if arch.ra is not None else None
        computed = {register.name for register in (*self.caller_pc, self.sp, self.fp, self.ra) if register is not None}
        preserved = (register for number, register in self.by_number.items() if number in arch.preserved)
        wanted = (*architecture.registers("general"), *(register for register in preserved if register is not None))
        self.kept = list({one.name: one for one in wanted if one.name not in computed}.values())
        """The registers that a call preserves: all except those that a step computes, and except vector registers,
        each of which costs a packet to a remote target."""
        self.of_thread = [register for name in _OF_THREAD if (register := registers.find(name)) is not None]
        """The registers of the thread: no function changes them."""
        self._arch = arch
        self._pac_mask = registers.find(_PAC_MASK) if arch.pac_mask else None

    def reader(self, frame: Any) -> ReadRegister:
        """Return the function that reads a register of a (pending) frame by its DWARF number."""

        def read_register(number: int) -> int:
            descriptor = self.by_number.get(number)
            try:
                if descriptor is not None:
                    return _to_int(frame.read_register(descriptor))
            except gdb.error as error:
                raise StepError(f"{self._arch.register_name(number)} is not known here: {error}") from error
            raise StepError(f"the target has no {self._arch.register_name(number)}")

        return read_register

    def pac_mask(self, frame: Any) -> int | None:
        """Return the bits of a signed return address that hold its signature; ``None``: the target does not tell.

        Behind a signal handler, GDB numbers the registers in its own order.  With an emulator that has more registers,
        the mask is then the value of another register.
        """
        if self._pac_mask is None:
            return None
        try:
            mask = int(frame.read_register(self._pac_mask)) & ADDRESS_MASK
        except gdb.error:
            return None
        return mask if _is_pac_mask(mask) else None


def _is_pac_mask(mask: int) -> bool:
    """Return whether a value has all bits from the size of an address up to bit 54 or 63, with or without bit 55."""
    bits = mask | _SIGN_BIT
    lowest = bits & -bits
    size = bits.bit_length()
    return bool(mask) and lowest >= 1 << _LOWEST_SIGNED and size in (56, 64) and bits == (1 << size) - lowest


def _to_int(value: gdb.Value) -> int:
    """Return the bits of a register: on s390x, a floating-point register may hold a saved address."""
    if value.type.code == gdb.TYPE_CODE_FLT:
        return int(value.format_string(format="x"), 16)
    return int(value) & ADDRESS_MASK
