"""The architecture of a recording, and the registers of its samples by DWARF number."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import ARCHES, Arch
from sframe_unwind.errors import FormatError


def arch_of(machine: str, byteorder: ByteOrder) -> Arch:
    """Return the architecture of a recording.

    :param machine: the output of ``uname -m``; empty: it is not known, and the architecture of this machine is assumed.
    :raises FormatError: SFrame has no ABI for the machine.
    """
    name = machine or platform.machine()
    for arch in ARCHES:
        if name in (arch.uname, arch.name) and arch.byteorder == byteorder:
            return arch
    known = ", ".join(arch.name for arch in ARCHES)
    raise FormatError(f"a recording of {name}, {byteorder}-endian; expected one of {known}")


def dwarf_registers(arch: Arch, registers: Mapping[int, int]) -> dict[int, int]:
    """Return the registers of a sample by DWARF number.

    :param registers: the registers by the kernel's numbers.
    """
    numbers = arch.sample_registers
    return {numbers[number]: value for number, value in registers.items() if number in numbers}
