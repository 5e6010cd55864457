"""The stack of a sample, and the input for unwinding it."""

from __future__ import annotations

from collections.abc import Mapping

from sframe_unwind.arch import Arch
from sframe_unwind.errors import StepError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.ending import Ending
from sframe_unwind.perf.sample_memory import SampleMemory
from sframe_unwind.perf.spaces import Space


class Stack(NamedTuple):
    """The stack of a sample by one method."""

    pcs: tuple[int, ...]
    """The pc of each frame, from the innermost outward."""
    interrupted: tuple[bool, ...]
    """Whether each pc is not a return address."""
    ending: Ending
    reason: str
    """Why it ends; empty: it reached the start of the thread."""


class Context(NamedTuple):
    """The input for unwinding a sample."""

    arch: Arch
    space: Space
    registers: Mapping[int, int]
    """The registers by DWARF number."""
    memory: SampleMemory
    stack_is_cut: bool
    user_chain: tuple[int, ...] | None = None
    """The stack as the kernel unwound it; ``None``: it was not recorded."""

    def read_register(self, number: int) -> int:
        """Return a register of the innermost frame.

        :raises StepError: it was not recorded.
        """
        if number not in self.registers:
            raise StepError(f"{self.arch.register_name(number)} was not recorded")
        return self.registers[number]
