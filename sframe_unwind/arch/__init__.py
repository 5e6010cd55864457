"""The supported architectures.  Each has one module that fills in :class:`sframe_unwind.arch.base.Arch`."""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.arch import aarch64, amd64, s390x
from sframe_unwind.arch.base import Arch
from sframe_unwind.arch.linux_kernel import Alternatives, EntryCode, LinuxKernel, Passage, PlaceKind, SwitchFrame

ARCHES = (aarch64.BIG, aarch64.LITTLE, amd64.ARCH, s390x.ARCH)

BY_NAME = {arch.name: arch for arch in ARCHES}
"""Maps :attr:`Arch.name` to the architecture."""


def of_elf(machine: str, byteorder: ByteOrder) -> Arch | None:
    """Return the architecture of an ELF file; ``None``: SFrame has no ABI for it.

    :param machine: name of ``e_machine``, as in :attr:`Arch.elf_machine`.
    """
    return next((arch for arch in ARCHES if (arch.elf_machine, arch.byteorder) == (machine, byteorder)), None)


__all__ = [
    "ARCHES",
    "BY_NAME",
    "Alternatives",
    "Arch",
    "EntryCode",
    "LinuxKernel",
    "Passage",
    "PlaceKind",
    "SwitchFrame",
    "of_elf",
]
