"""What the interpretation has to know of one machine; the files of the machines mirror each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Callable, NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.code.instruction import (
    ANYTHING,
    CC_LEFT,
    CC_OPERATION,
    CC_RIGHT,
    EVERYWHERE,
    HIGH,
    PC_RELATIVE,
    REGISTER,
    Condition,
    Exit,
    Expression,
    Instruction,
    Kind,
    Store,
)

Special = Callable[[bytes], "Instruction | None"]
Describe = Callable[["Disassembled"], "Instruction | None"]
Execute = Callable[[bytes, bytes], "Instruction | None"]
FindCondition = Callable[[str, "Sequence[int]"], "tuple[str, int] | None"]


class Disassembled(NamedTuple):
    """An instruction that VEX does not know, as capstone writes it."""

    raw: bytes
    mnemonic: str
    operands: str
    registers: tuple[tuple[int, ...], ...]
    """For each operand the registers that it names, as far as they are followed; those of an address are left out."""
    may_jump: bool
    memory: tuple[tuple[Expression | None, int, tuple[int, ...]], ...]
    """For each operand in memory its address (``None``: not one of a base, an index and a distance), its size in bytes
    (0: not known), and the registers in the address."""

    @property
    def size(self) -> int:
        """Of the instruction, in bytes."""
        return len(self.raw)

    @property
    def all_registers(self) -> tuple[int, ...]:
        """The registers of all operands."""
        return tuple(number for operand in self.registers for number in operand)


class Shape(NamedTuple):
    """An instruction with its displacement taken out."""

    size: int
    """Of the instruction, in bytes."""
    key: bytes
    """The same for all instructions that differ in the displacement only, while its sign is the same."""
    displacement: int


FindShape = Callable[[bytes], "Shape | None"]


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
    callee_area: tuple[int, int]
    """What a callee may overwrite above the stack pointer, in bytes from there: s390x's register save area."""
    stack_alignment: int
    """Of a CFA, in bytes, by the ABI."""
    own_convention: tuple[int, ...]
    """What a call changes that leaves its return address in another register than the ABI's."""
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
    shape: FindShape
    """The shape of the instruction at the start of some bytes.

    It has one if its displacement is only added to an address, or its constant only copied, added or compared;
    ``None`` otherwise.  :attr:`special` comes first.
    """
    describe: Describe
    """What an instruction does that VEX does not know; ``None``: it may do anything.

    Capstone's word for which operands are written is not taken: it is wrong for many instructions.
    """
    execute: Execute | None
    """``(instruction, target)``: what an instruction does that executes another with some bits changed; ``None``: it
    may do anything but jump.  The machine has none where this is ``None`` itself."""
    helpers: Mapping[str, tuple[int, ...]]
    """How the names of VEX's helpers with side effects begin, and the general registers that those write."""
    unsized_helpers: tuple[str, ...]
    """How the names of those begin that write more memory than they declare."""
    system_call: int
    """The register with the number of a system call."""
    system_call_results: tuple[int, ...]
    """The registers that a system call changes."""
    ending_calls: frozenset[int]
    """Numbers of the system calls that do not return."""
    is_page_relative: Callable[[bytes], bool]
    """Whether an instruction computes an address from its page rather than from its own address."""
    is_padding: Callable[[bytes], bool]
    """Whether an instruction does nothing, and may be there for the sake of alignment only."""
    condition: FindCondition
    """``(helper, constants)``: relation and number of the first operand, of VEX's call for a condition."""
    comparisons: Mapping[int, int]
    """What VEX says set the condition code where it was a comparison for equality, or for any relation, and how many of
    the lowest bits of its operands count."""
    unsigned_comparisons: frozenset[int]
    """Those of them that compare values without sign."""
    capstone_registers: Mapping[str, int]
    """Capstone's names of the general and vector registers, and of their parts."""
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

    @property
    def followed(self) -> tuple[int, ...]:
        """All registers that can hold something of interest."""
        vectors = self.vex_vectors.values()
        return (*self.general, *vectors, *(number + HIGH for number in vectors))

    def anything(self, size: int) -> Instruction:
        """Return an instruction that may do anything but jump."""
        return writing(size, (*self.followed, CC_OPERATION, CC_LEFT, CC_RIGHT), (EVERYWHERE,))


def shape(size: int, rest: bytes, displacement: int) -> Shape:
    """Return a shape.  VEX may lift an instruction differently if its displacement is 0, so the sign is in the key.

    :param rest: the instruction without the displacement.
    """
    sign = b"+" if displacement > 0 else b"-" if displacement else b"0"
    return Shape(size, rest + sign, displacement)


def signed(value: int, bits: int) -> int:
    """Return the lowest bits of a number as one with a sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


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
    return Instruction(size, Kind.NEXT, (), (), (Exit((PC_RELATIVE, offset), 0, 0, condition),), None)


def call(size: int, offset: int, link: int) -> Instruction:
    """Return a direct call that leaves its return address in a register."""
    return Instruction(size, Kind.CALL, ((link, (PC_RELATIVE, size)),), (), (), (PC_RELATIVE, offset), link)


STOP = Instruction(0, Kind.STOP, (), (), (), None)
"""An instruction of which nothing is known, not even its size."""


def trap(size: int) -> Instruction:
    """Return an instruction that ends the program, or is handled by who comes back behind it."""
    return Instruction(size, Kind.TRAP, (), (), (), None)


def writing(size: int, registers: Iterable[int] = (), stores: tuple[Store, ...] = ()) -> Instruction:
    """Return an instruction that writes something unknown to registers and the condition code, and that stores."""
    written = dict.fromkeys((*registers, CC_OPERATION), ANYTHING)
    return Instruction(size, Kind.NEXT, tuple(written.items()), stores, (), None)


def anywhere_from(register: int) -> Store:
    """Return a store of an unknown number of bytes around an address in a register."""
    return (REGISTER, register, 0), ANYTHING, ANYTHING
