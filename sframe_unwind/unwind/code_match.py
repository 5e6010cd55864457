"""Rules that the machine code of a module gives, where neither SFrame nor CFI describes it."""

from __future__ import annotations

from typing import Protocol

from sframe_unwind.memory import ReadRegister
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import UnwindRule

CODE = "code"
"""Name of the unwinder in frames whose caller was found by such a rule."""


class CodeFunction(NamedTuple):
    """A function that was interpreted."""

    start: int
    """Address of the first instruction."""
    end: int
    """End address (exclusive)."""
    found_by: str
    """How the start is known, in words."""


class CodeMatch(NamedTuple):
    """The rule of the code for an address, like :class:`sframe_unwind.sframe.table.Match` from SFrame."""

    function: CodeFunction
    rule: UnwindRule
    basis: str
    """What the rule rests on, in words."""


class AskedFrame(NamedTuple):
    """A frame of a process that may show where its function begins."""

    pc: int
    sp: int
    fp: int
    interrupted: bool
    """The pc is the next instruction, not a return address."""
    read_register: ReadRegister | None
    """Reads the other registers; ``None``: they are not known."""


class ModuleCode(Protocol):
    """The machine code of a module, interpreted function by function as rules are asked for."""

    def match(self, pc: int) -> CodeMatch | None:
        """Return the rule for a lookup address; ``None``: the code does not tell."""

    def learn(self, frame: AskedFrame) -> CodeMatch | None:
        """Return the rule for a frame that shows where its function begins; ``None``: it does not."""
