"""A Linux kernel that a debugger is attached to, or whose memory is in an image."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, RangeMap
from sframe_unwind.arch import Arch, LinuxKernel, PlaceKind
from sframe_unwind.cfi.rules import NoRule
from sframe_unwind.errors import KernelError
from sframe_unwind.kernel.entry_code import EntryPlace, FindSymbol
from sframe_unwind.kernel.types import Types
from sframe_unwind.memory import ReadMemory, ReadWord
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.orc import OrcKind, OrcTable

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
    """The layout of ``struct pt_regs``, with what is between SP and the structure."""

    size: int
    """Size in bytes."""
    registers: dict[int, int]
    """Offset of each register by DWARF number, in bytes."""
    frame_record: int | None
    """Offset of the frame record, in bytes; ``None``: there is none."""
    start: int
    """Offset of the structure itself, in bytes."""
    user_mode: tuple[int, int] | None
    """The word that shows whether user space was interrupted: its offset in bytes, and the number of its bit."""


class Kernel:
    """The data for unwinding a kernel's stacks and listing its tasks.

    :param facts: the facts about its architecture.
    :param places: places in its entry code, as :func:`sframe_unwind.kernel.entry_code.find_places` finds them.
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
        places, below = self.facts.saved_registers.items(), self.facts.below_registers
        start = self.types.structure(below).size if below else 0
        user_mode = None
        if self.facts.user_mode is not None:
            member, bits = self.facts.user_mode
            user_mode = start + self.types.place(_PT_REGS, member).offset, bits.bit_length() - 1
        return SavedRegisters(
            start + self.types.structure(_PT_REGS).size,
            {number: start + self.types.place(_PT_REGS, path).offset for number, path in places},
            self.types.place(_PT_REGS, self.facts.frame_record).offset if self.facts.frame_record else None,
            start,
            user_mode,
        )

    def leaves_stack(self, lookup: int) -> bool:
        """Return whether the function at a lookup address calls one on another stack, so its rows are wrong."""
        if self.orc is not None:
            entry = self.orc.find(lookup)
            return entry is not None and entry.kind is OrcKind.CALL and isinstance(entry.said, NoRule)
        place = self.places.get(lookup)
        return place is not None and place.kind in (PlaceKind.STACK_SWITCH, PlaceKind.TASK_START)

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
            raise KernelError(
                f"no symbol {_INIT_TASK}: the target is not a Linux kernel, or its symbols are not loaded"
            )
        return found
