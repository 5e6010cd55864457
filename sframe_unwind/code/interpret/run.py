"""The result of interpreting a function."""

from __future__ import annotations

from typing import Protocol

from sframe_unwind.code.decode.instruction import Instruction
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.stores import Written
from sframe_unwind.code.interpret.values import Value
from sframe_unwind.named_tuple import NamedTuple

_MASK = (1 << 64) - 1


def address_of(block: int) -> int:
    """Return the address of a block's first instruction.

    A block is identified by that address.  If states with different stack pointers are kept apart, a number in the bits
    above it distinguishes the stack pointers.
    """
    return block & _MASK


class Source(NamedTuple):
    """An instruction that leads to a block."""

    block: int
    """Start of the block with the instruction."""
    pc: int
    """Address of the instruction."""


class Passed(NamedTuple):
    """A pointer that a function passes to another one of the file."""

    called: int
    """Address of the callee."""
    register: int
    distance: int | None
    """Distance of a saved register from the place to which the pointer points, in bytes; ``None``: not known."""


class Run(NamedTuple):
    """The result of interpreting a function."""

    states: dict[int, State]
    """The states at the starts of blocks, by block (:func:`address_of`); each reaches to the next, or to a jump."""
    sources: dict[int, set[Source]]
    """The instructions that lead to each block."""
    guessed: set[int]
    """Blocks to which only a jump with uncertain targets, or a trap's handler, may lead."""
    listed: set[int]
    """Those of :attr:`guessed` to which an entry of a jump's table leads, if nothing else can lead there.

    The targets of all other jumps are known, and all code of the function before the block is reached.  Where the table
    ends is not certain."""
    continued: set[int]
    """Starts of other functions that were entered with this function's frame."""
    called: set[int]
    """Called addresses."""
    returns: bool
    """Whether any path returns to the caller, or may."""
    changes_fp: bool
    """Whether it certainly returns with another frame pointer than at its entry."""
    returns_to: frozenset[Value]
    """The abstract values that it takes as the target of returns and of jumps to the value of a register."""
    replaces_return: bool
    """Whether it may return to a value that it has stored over its return address."""
    rests_on_call: bool
    """Whether the stack pointer was taken from a register other than the frame pointer."""
    is_local: bool
    """Whether only the function's own code was used."""
    stack_pointers_at_end: frozenset[Value]
    """The stack pointers when it returns to its caller, or jumps to another function instead of returning."""
    stack_pointers_at_return: frozenset[Value]
    """The stack pointers with which its caller continues, if it returns to its caller."""
    has_return: bool
    """Whether it has a return instruction, whatever its target is."""
    presumes: bool
    """Whether a call was assumed not to return because paths with other stack pointers lead to the address after it."""
    complete: bool
    """``False``: the function was given up."""
    certain: bool
    """All targets of its jumps are known for certain."""
    meets: bool
    """Whether paths meet at some place with stack pointers at a constant distance from each other."""
    apart: bool
    """Whether these paths were kept apart."""
    proved: dict[int, int]
    """The blocks of the function itself in which everything was proved that was to be proved, and their ends."""
    ends_as_entered: bool
    """Whether it is left on all paths in the state that the ABI defines for a function's entry, without a frame."""
    restored: frozenset[int]
    """The followed registers that have their values at the entry on all paths on which it is left."""
    stores: frozenset[Written]
    """Its stores above its frame and through pointers that it got."""
    passed: frozenset[Passed]
    """The pointers to saved registers that it passes to functions of the file."""
    pushed: int = 0
    """Number of bytes on the stack at the entry in addition to those of the ABI, as its end shows."""


class Prover(Protocol):
    """Tells for the instructions of each block, in order, whether the required proofs succeed."""

    def begin(self) -> None:
        """Begin a block."""

    def holds(self, pc: int, instruction: Instruction, state: State) -> bool:
        """Return whether the proof succeeds in the state before an instruction; if not, the block is skipped."""
