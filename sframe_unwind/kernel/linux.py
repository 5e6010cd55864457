"""A Linux kernel that a debugger is attached to, or that a memory image holds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Callable, NamedTuple

from sframe_unwind.address import ADDRESS_MASK, RangeMap
from sframe_unwind.arch import Arch, LinuxKernel
from sframe_unwind.kernel.entry_code import EntryPlace, FindSymbol
from sframe_unwind.kernel.types import KernelError, Types
from sframe_unwind.memory import ReadMemory, ReadWord
from sframe_unwind.orc import OrcTable

EXCEPTION = "pt_regs"
"""Name of the unwinder in the frame of an exception, whose caller has its registers in ``struct pt_regs``."""

_INIT_TASK = "init_task"
_PT_REGS = "pt_regs"
_ENTRY_TEXT = ("__entry_text_start", "__entry_text_end")
"""The symbols around the code that is entered from user space."""


def entry_code(symbol: FindSymbol) -> Callable[[int], bool]:
    """Return a function that returns whether an address is in the code that is entered from user space."""
    start, end = map(symbol, _ENTRY_TEXT)
    return lambda pc: start is not None and end is not None and start <= pc < end


class SavedRegisters(NamedTuple):
    """The layout of ``struct pt_regs``."""

    size: int
    """In bytes."""
    registers: dict[int, int]
    """Offset of each register by DWARF number, in bytes."""
    frame_record: int | None
    """Offset of the frame record, in bytes; ``None``: there is none."""


class Kernel:
    """What unwinding and listing tasks need to know of a kernel.

    :param facts: those of its architecture.
    :param places: of its entry code, as :func:`sframe_unwind.kernel.entry_code.find_places` finds them.
    :param orc: its ORC; ``None``: it has none.
    """

    def __init__(
        self,
        arch: Arch,
        facts: LinuxKernel,
        places: Iterable[EntryPlace],
        types: Types,
        symbol: FindSymbol,
        read: ReadMemory,
        orc: OrcTable | None = None,
    ) -> None:
        self.arch = arch
        self.facts = facts
        self.types = types
        self.symbol = symbol
        self.read = read
        self.orc = orc
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
            self.types.place(_PT_REGS, self.facts.frame_record).offset if self.facts.frame_record else None,
        )

    def is_user_mode(self, saved: int, read_word: ReadWord) -> bool:
        """Return whether an exception interrupted user space.

        :param saved: address of its ``struct pt_regs``.
        :raises MemoryReadError: the structure cannot be read.
        :raises KernelError: the debug information does not have it.
        """
        if self.facts.user_mode is None:
            return False
        member, bits = self.facts.user_mode
        return bool(read_word(saved + self.types.place(_PT_REGS, member).offset & ADDRESS_MASK) & bits)

    @cached_property
    def is_entry_code(self) -> Callable[[int], bool]:
        """Returns whether an address is in the code that is entered from user space."""
        return entry_code(self.symbol)

    @property
    def init_task(self) -> int:
        """The address of the first task.

        :raises KernelError: there is no such symbol.
        """
        found = self.symbol(_INIT_TASK)
        if found is None:
            raise KernelError(f"no symbol {_INIT_TASK}: the target is no Linux kernel, or its symbols are not loaded")
        return found
