"""What the interpretation has to know of one machine; the files of the machines mirror each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Callable, NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.code.instruction import (
    ANYTHING,
    CC_LEFT,
    CC_OPERATION,
    CC_RIGHT,
    PC_RELATIVE,
    REGISTER,
    Condition,
    Exit,
    Instruction,
    Kind,
)

Special = Callable[[bytes], "Instruction | None"]
FindCondition = Callable[[str, "Sequence[int]"], "tuple[str, int] | None"]


class Machine(NamedTuple):
    """One machine.  Registers are DWARF register numbers."""

    arch: Arch
    vex_name: str
    """The architecture's name in :mod:`pyvex.arches`."""
    vex_registers: Mapping[str, int]
    """VEX's names of the general registers and of the parts of its condition code."""
    vex_vectors: Mapping[str, int]
    """Its names of the vector registers."""
    general: tuple[int, ...]
    """The general registers: each has a value at a function's entry that counts."""
    preserved: frozenset[int]
    """What a call leaves unchanged."""
    sp_at_entry: int
    """The stack pointer at a function's entry, from the CFA, in bytes."""
    stack_alignment: int
    """Of a CFA, in bytes, by the ABI."""
    ra_slot: int | None
    """Where from the CFA the return address is at a function's entry; ``None``: in its register."""
    max_size: int
    """Of an instruction, in bytes."""
    sizes: Callable[[bytes, int], Sequence[int]]
    """``(code, offset)``: the sizes that the instruction there may have."""
    special: Special
    """The instruction at the start of some bytes, where VEX does not know it or means something else by it.

    Direct jumps and calls as well: each has other bytes, and it takes VEX long to say what they do.
    """
    system_call: int
    """The register with the number of a system call."""
    ending_calls: frozenset[int]
    """Numbers of the system calls that do not return."""
    is_page_relative: Callable[[bytes], bool]
    """Whether an instruction computes an address from its page rather than from its own address."""
    is_padding: Callable[[bytes], bool]
    """Whether an instruction does nothing, and may be there for the sake of alignment only."""
    condition: FindCondition
    """``(helper, constants)``: relation and number of the first operand, of VEX's call for a condition."""
    comparisons: frozenset[int]
    """What VEX says set the condition code where it was a comparison for equality, or for any relation."""
    unsigned_comparisons: frozenset[int]
    """Those of them that compare values without sign."""
    capstone_registers: Mapping[str, int]
    """Capstone's names of the general registers and their parts."""
    returns_through: int | None
    """The register of the return address, where VEX does not tell returns from other indirect jumps."""
    att_syntax: bool
    """Whether objdump writes instructions as AT&T did."""
    objdump_text: Callable[[str, str], str]
    """``(mnemonic, operands)`` of capstone: the instruction as objdump writes it."""
    disassembler: tuple[str, str]
    """Names of capstone's constants for architecture and mode."""
    plt_entry_sizes: tuple[int, ...]
    """Of the entries of a procedure linkage table, in bytes, where its section does not say."""

    @property
    def big_endian(self) -> bool:
        """Whether the halves of a vector register lie the other way round in VEX's guest state."""
        return self.vex_name == "ARCH_S390X"


def jump(size: int, offset: int) -> Instruction:
    """Return an unconditional jump.

    :param offset: of the target from the instruction, in bytes.
    """
    return Instruction(size, Kind.JUMP, (), (), (), (PC_RELATIVE, offset))


def conditional_jump(size: int, offset: int, relation: str | None) -> Instruction:
    """Return a jump that the condition code decides on.

    :param relation: between the values that were compared; ``None``: of no use.
    """
    if offset == size:
        return Instruction(size, Kind.NEXT, (), (), (), None)
    left, right = (REGISTER, CC_LEFT, 0), (REGISTER, CC_RIGHT, 0)
    condition = None if relation is None else Condition(relation, left, right, (REGISTER, CC_OPERATION, 0))
    return Instruction(size, Kind.NEXT, (), (), (Exit((PC_RELATIVE, offset), 0, condition),), None)


def call(size: int, offset: int, link: int) -> Instruction:
    """Return a direct call that leaves its return address in a register."""
    return Instruction(size, Kind.CALL, ((link, (PC_RELATIVE, size)),), (), (), (PC_RELATIVE, offset), link)


def trap(size: int) -> Instruction:
    """Return an instruction that ends the program, or is handled by who comes back behind it."""
    return Instruction(size, Kind.TRAP, (), (), (), None)


def unknown_results(size: int, registers: Sequence[int]) -> Instruction:
    """Return an instruction that writes something unknown to registers."""
    return Instruction(size, Kind.NEXT, tuple((number, ANYTHING) for number in registers), (), (), None)
