"""The interface of a machine for the interpretation; the files of the machines mirror each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.code.decode.folding import unknown
from sframe_unwind.code.decode.instruction import (
    ANYTHING,
    CC_LEFT,
    CC_OPERATION,
    CC_RIGHT,
    DIRECTION,
    EVERYWHERE,
    HIGH,
    PC_RELATIVE,
    REGISTER,
    REST,
    Condition,
    Exit,
    Expression,
    Instruction,
    Kind,
    Store,
)
from sframe_unwind.named_tuple import NamedTuple

Special = Callable[[bytes], "Instruction | None"]
Describe = Callable[["Disassembled"], "Instruction | None"]
Execute = Callable[[bytes, bytes], "Instruction | None"]
FindLike = Callable[[bytes], "Like | None"]
FindCondition = Callable[[str, "Sequence[int]"], "tuple[str, int] | None"]


class Disassembled(NamedTuple):
    """An instruction that VEX does not know, as decoded by capstone."""

    raw: bytes
    mnemonic: str
    operands: str
    registers: tuple[tuple[int, ...], ...]
    """For each operand, the followed registers that it names, without those of an address."""
    may_jump: bool
    memory: tuple[tuple[Expression | None, int, tuple[int, ...]], ...]
    """For each operand in memory, its address (``None``: not the sum of a base, an index and a distance), its size in
    bytes (0: not known), and the registers in the address."""
    written: frozenset[int]
    """The followed registers that it writes by capstone; a vector register has the number of its lower half."""
    accesses: tuple[int, ...]
    """For each operand in memory, capstone's bits for reading (1) and writing (2)."""

    @property
    def size(self) -> int:
        """Size of the instruction, in bytes."""
        return len(self.raw)

    @property
    def all_registers(self) -> tuple[int, ...]:
        """The registers of all operands."""
        return tuple(number for operand in self.registers for number in operand)


class Like(NamedTuple):
    """An instruction that capstone does not know, and one with the same operands that it knows."""

    mnemonic: str
    """Mnemonic of the first one."""
    raw: bytes
    """Bytes of the second one, which has the same size."""


class Shape(NamedTuple):
    """An instruction without its parameters: its displacement, a constant, and registers."""

    size: int
    """Size of the instruction, in bytes."""
    key: bytes
    """A key that is equal for all instructions that differ only in their parameters.  These have the same signs, and
    the same registers are equal."""
    numbers: tuple[int, ...]
    """The displacement and the constant, without those that are 0."""
    registers: tuple[int, ...] = ()
    """The registers, each once."""


FindShape = Callable[[bytes], "Shape | None"]


class Machine(NamedTuple):
    """One machine.  Registers are DWARF register numbers."""

    arch: Arch
    vex_name: str
    """The architecture's name in :mod:`pyvex.arches`."""
    big_endian: bool
    """Whether VEX's guest state has the halves of a vector register in the opposite order."""
    vex_registers: Mapping[str, int]
    """VEX's names of the general registers and of the parts of its condition code."""
    vex_vectors: Mapping[str, int]
    """VEX's names of the vector registers."""
    general: tuple[int, ...]
    """The general registers: the value of each at a function's entry is followed."""
    preserved: frozenset[int]
    """The registers that a call preserves."""
    sp_at_entry: int
    """Offset of the stack pointer from the CFA at a function's entry, in bytes."""
    callee_area: tuple[int, int]
    """The area above the stack pointer that a callee may overwrite, in bytes from SP: s390x's register save area."""
    stack_alignment: int
    """Alignment of a CFA by the ABI, in bytes."""
    kept_alignment: int
    """Alignment of a CFA where callers break that of the ABI, in bytes."""
    own_convention: tuple[int, ...]
    """The registers that a call with a special calling convention may change.

Such a call leaves its return address in another register than the ABI's: ``brasl %r0,__fentry__``."""
    other_links: tuple[int, ...]
    """The registers, besides the ABI's, in which callers may leave the return address, and nothing else that is an
    address of code."""
    ra_slot: int | None
    """Offset of the return address from the CFA at a function's entry; ``None``: it is in its register."""
    max_size: int
    """Maximum size of an instruction, in bytes."""
    sizes: Callable[[bytes, int], Sequence[int]]
    """``(code, offset)``: returns the possible sizes of the instruction there."""
    special: Special
    """Decodes the instruction at the start of some bytes, if VEX does not know it or decodes it wrongly.

    Also decodes direct jumps and calls, because VEX takes long, and nearly all of them have different bytes.
    """
    shape: FindShape
    """Returns the shape of the instruction at the start of some bytes.

    An instruction has a shape if its displacement is only added to an address, or its constant is only copied, added or
    compared; the result is ``None`` for others.  :attr:`special` is asked before.
    """
    describe: Describe
    """Returns the effects of an instruction that VEX does not know; ``None``: any effect is possible.

    Capstone's information about written operands is not used: it is wrong for many instructions.
    """
    jumps: Callable[[bytes], Iterable[tuple[int, int]]]
    """Yields the offsets in some code of what looks like a direct jump or call, and where it leads."""
    like: FindLike | None
    """Returns an instruction with the same operands as the one at the start of some bytes; capstone does not know that.

    The field itself is ``None`` if no such instruction is known."""
    execute: Execute | None
    """``(instruction, target)``: returns the effects of an instruction that executes another one with some bits
    changed; ``None``: any effect except a jump is possible.  The field itself is ``None`` if the machine has no such
    instruction."""
    in_block_loop: Callable[[bytes, int], Instruction | None] | None
    """``(code, offset)``: returns the effects of an instruction of a loop that stores one object in blocks, where they
    differ from those of the instruction alone.  The field itself is ``None`` if no such loop is known."""
    helpers: Mapping[str, tuple[int, ...]]
    """Prefixes of the names of VEX's helpers with side effects, and the general registers that those write."""
    unsized_helpers: tuple[str, ...]
    """Prefixes of the names of helpers that write more memory than they declare."""
    system_call: int
    """The register with the number of a system call."""
    system_call_arguments: tuple[int, ...]
    """The registers with the arguments of a system call."""
    system_call_results: tuple[int, ...]
    """The registers that a system call changes."""
    ending_calls: frozenset[int]
    """Numbers of the system calls that do not return."""
    is_page_relative: Callable[[bytes], bool]
    """Returns whether an instruction computes an address from its page, not from its own address."""
    is_padding: Callable[[bytes], bool]
    """Returns whether an instruction does nothing, and may serve only for alignment."""
    condition: FindCondition
    """``(helper, constants)``: returns the relation and the number of the first operand of VEX's call for a
    condition."""
    comparisons: Mapping[int, int]
    """VEX's numbers of operations that set the condition code by a comparison (for equality or any relation), and how
    many of the lowest bits of the operands they compare."""
    unsigned_comparisons: frozenset[int]
    """The operations among them that compare unsigned values."""
    capstone_registers: Mapping[str, int]
    """Capstone's names of the general and vector registers, and of their parts."""
    returns_through: int | None
    """The register of the return address, if VEX does not distinguish returns from other indirect jumps."""
    att_syntax: bool
    """Whether objdump writes instructions in AT&T's syntax."""
    objdump_text: Callable[[str, str], str]
    """``(mnemonic, operands)`` of capstone: returns the instruction in objdump's notation."""
    references: Callable[[str, int], Sequence[int]]
    """``(instruction in objdump's notation, address after it)``: returns the addresses that the instruction jumps to or
    computes from its own, one for each such operand."""
    disassembler: tuple[str, str]
    """Names of capstone's constants for architecture and mode."""
    directive_name: Callable[[int], str]
    """Returns a register as ``.cfi_*`` directives of GNU as have it."""
    has_access: bool
    """Whether capstone knows which operands an instruction writes."""
    entry_marks: frozenset[bytes]
    """Instructions that begin a function, of which an indirect call must lead to one.  Parts of functions lack them."""
    plt_entry_sizes: tuple[int, ...]
    """Sizes of the entries of a procedure linkage table, in bytes, if its section does not give one."""

    def for_any_caller(self) -> Machine:
        """Return the machine without the assumption that callers align the stack by the ABI.

        Go's functions do not, nor does what starts a program: code that aligns its stack does not rely on it.
        """
        return self._replace(stack_alignment=self.kept_alignment)

    @property
    def followed(self) -> tuple[int, ...]:
        """All registers that can hold a value of interest."""
        return (*self.general, *self.words_of_vectors)

    @property
    def words_of_vectors(self) -> tuple[int, ...]:
        """The numbers of both words of each followed vector register."""
        vectors = self.vex_vectors.values()
        return (*vectors, *(number + HIGH for number in vectors))

    def anything(self, size: int) -> Instruction:
        """Return an instruction with any effect except a jump."""
        return writing(size, (*self.followed, REST, CC_LEFT, CC_RIGHT, DIRECTION), (EVERYWHERE,))


def named(arch: Arch, prefix: str = "") -> Callable[[int], str]:
    """Return what names registers in directives: by their names with a prefix, or by their numbers."""
    return lambda number: f"{prefix}{arch.register_names[number]}" if number in arch.register_names else str(number)


def shape(size: int, rest: bytes, displacement: int) -> Shape:
    """Return a shape.  VEX may lift an instruction differently if its displacement is 0, so the sign is in the key.

    :param rest: the instruction without the displacement.
    """
    sign = b"+" if displacement > 0 else b"-" if displacement else b"0"
    return Shape(size, rest + sign, (displacement,) if displacement else ())


def shape_of_operands(
    size: int, rest: bytes, numbers: Sequence[int], registers: Sequence[int], is_fixed: bool = False
) -> Shape:
    """Return a shape.  VEX lifts ``xor %rax,%rax`` differently, so it is in the key which registers are equal.

    :param rest: the instruction without the numbers and the registers.
    :param registers: at most three, in the order of their places.
    :param is_fixed: whether the last register is in ``rest``, too.
    """
    distinct = tuple(dict.fromkeys(registers))
    places, signs = 1, 0
    for register in registers:
        places = places << 2 | distinct.index(register)
    for number in numbers:
        signs = 3 * signs + (number > 0) + 2 * (number < 0)
    if is_fixed:
        distinct = tuple(register for register in distinct if register != registers[-1])
    return Shape(size, rest + bytes((places, signs)), tuple(filter(None, numbers)), distinct)


def signed(value: int, bits: int) -> int:
    """Return the lowest bits of a number as a signed number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


ADDRESSES = re.compile(r"0x[0-9a-f]+")
"""Matches the hexadecimal numbers in an instruction."""


def small_address(text: str) -> str:
    """Return an address in capstone's notation with ``0x``, which capstone leaves out of addresses below 10."""
    return f"0x{text}" if len(text) == 1 and text.isdecimal() else text


def jump(size: int, offset: int) -> Instruction:
    """Return an unconditional jump.

    :param offset: offset of the target from the instruction, in bytes.
    """
    return Instruction(size=size, kind=Kind.JUMP, puts=(), stores=(), exits=(), target=(PC_RELATIVE, offset))


def conditional_jump(size: int, offset: int, relation: str | None) -> Instruction:
    """Return a jump that depends on the condition code.

    :param relation: relation between the values that were compared; ``None``: not useful.
    """
    if offset == size:
        return Instruction(size=size, kind=Kind.NEXT, puts=(), stores=(), exits=(), target=None)
    left, right = (REGISTER, CC_LEFT, 0), (REGISTER, CC_RIGHT, 0)
    condition = None if relation is None else Condition(relation, left, right, (REGISTER, CC_OPERATION, 0))
    return Instruction(
        size=size,
        kind=Kind.NEXT,
        puts=(),
        stores=(),
        exits=(Exit((PC_RELATIVE, offset), 0, 0, condition),),
        target=None,
    )


def call(size: int, offset: int, link: int) -> Instruction:
    """Return a direct call that leaves its return address in a register."""
    return Instruction(
        size=size,
        kind=Kind.CALL,
        puts=((link, (PC_RELATIVE, size)),),
        stores=(),
        exits=(),
        target=(PC_RELATIVE, offset),
        link=link,
    )


STOP = Instruction(size=0, kind=Kind.STOP, puts=(), stores=(), exits=(), target=None)
"""An instruction about which nothing is known, not even its size."""


def trap(size: int) -> Instruction:
    """Return an instruction that ends the program, or whose handler continues after it."""
    return Instruction(size=size, kind=Kind.TRAP, puts=(), stores=(), exits=(), target=None)


def writing(size: int, registers: Iterable[int] = (), stores: tuple[Store, ...] = ()) -> Instruction:
    """Return an instruction that writes unknown values to registers and the condition code, and that stores.

    An address in a register may stay there, or advance.
    """
    written = {number: unknown((REGISTER, number, 0)) for number in registers}
    written[CC_OPERATION] = ANYTHING
    return Instruction(size=size, kind=Kind.NEXT, puts=tuple(written.items()), stores=stores, exits=(), target=None)


def anywhere_from(register: int) -> Store:
    """Return a store of an unknown number of bytes around an address in a register."""
    return (REGISTER, register, 0), ANYTHING, ANYTHING
