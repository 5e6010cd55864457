"""A Linux kernel that a debugger is attached to, or that a memory image holds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch, LinuxKernel
from sframe_unwind.kernel.entry_code import EntryPlace, FindSymbol
from sframe_unwind.kernel.types import KernelError, Types
from sframe_unwind.memory import ReadMemory

_INIT_TASK = "init_task"
_PT_REGS = "pt_regs"


class SavedRegisters(NamedTuple):
    """The layout of ``struct pt_regs``."""

    size: int
    """In bytes."""
    registers: dict[int, int]
    """Offset of each register by DWARF number, in bytes."""
    frame_record: int
    """Offset of the frame record, in bytes."""


class Kernel:
    """What unwinding and listing tasks need to know of a kernel.

    :param facts: those of its architecture.
    :param places: of its entry code, as :func:`sframe_unwind.kernel.entry_code.find_places` finds them.
    """

    def __init__(
        self,
        arch: Arch,
        facts: LinuxKernel,
        places: Iterable[EntryPlace],
        types: Types,
        symbol: FindSymbol,
        read: ReadMemory,
    ) -> None:
        self.arch = arch
        self.facts = facts
        self.types = types
        self.symbol = symbol
        self.read = read
        self.places: RangeMap[EntryPlace] = RangeMap((place.start, place.end, place) for place in places)

    @cached_property
    def saved_registers(self) -> SavedRegisters:
        """The layout of ``struct pt_regs``.

        :raises KernelError: the debug information does not have it.
        """
        places = self.facts.saved_registers.items()
        return SavedRegisters(
            self.types.structure(_PT_REGS).size,
            {number: self.types.place(_PT_REGS, path).offset for number, path in places},
            self.types.place(_PT_REGS, self.facts.frame_record).offset,
        )

    @property
    def init_task(self) -> int:
        """The address of the first task.

        :raises KernelError: there is no such symbol.
        """
        found = self.symbol(_INIT_TASK)
        if found is None:
            raise KernelError(f"no symbol {_INIT_TASK}: the target is no Linux kernel, or its symbols are not loaded")
        return found
