"""Machine code to :class:`Instruction`, by VEX, the intermediate language of Valgrind.

This is the one module that imports pyvex.  An instruction is lifted by itself and without optimization, so that its
meaning depends on its bytes alone and is computed once for all places where they stand.
"""

from __future__ import annotations

from copy import copy
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sframe_unwind.code.disassembly import Disassembler
from sframe_unwind.code.instruction import (
    ADD,
    AND,
    ANYTHING,
    CC_OPERATION,
    CHOICE,
    COMPUTED,
    CONSTANT,
    EXTEND,
    HIGH,
    INVERSE,
    LOAD,
    MIXED,
    PAGE_RELATIVE,
    PC_RELATIVE,
    REGISTER,
    RESULT,
    SHIFT_LEFT,
    SUBTRACT,
    Condition,
    Exit,
    Expression,
    Instruction,
    Kind,
    Store,
)
from sframe_unwind.code.machines import Machine
from sframe_unwind.code.machines.base import STOP, writing
from sframe_unwind.code.shapes import Shapes
from sframe_unwind.errors import MissingExtraError

_PACKAGES = ("pyvex", "capstone")
BASES = (0x5AFE_0000_0000, 0x2BED_0000_0000)
"""Where instructions are lifted, as multiples of a page.  A constant within :data:`_REACH` of that is relative to the
instruction's address if it moves with it: a program's own constant lies near one of them at most."""
_REACH = 1 << 33
_PAGE = 0x1000
_MASK = (1 << 64) - 1
_MAX_CACHED = 400_000
"""Instructions.  Programs have a tenth of it; code that is random bytes has no end of different ones."""
_MAX_OPERANDS = 4
_PC = -1
"""The number of VEX's program counter, which instructions set at their ends."""

_ENDS = {
    "Ijk_Boring": Kind.JUMP,
    "Ijk_Yield": Kind.JUMP,
    "Ijk_InvalICache": Kind.JUMP,
    "Ijk_FlushDCache": Kind.JUMP,
    "Ijk_EmWarn": Kind.JUMP,
    "Ijk_Call": Kind.CALL,
    "Ijk_Ret": Kind.RETURN,
    "Ijk_Sys_syscall": Kind.SYSTEM,
    "Ijk_SigTRAP": Kind.TRAP,
    "Ijk_SigILL": Kind.TRAP,
}
"""Jump kinds; what follows others is not known."""

_UNDECODED = ("Ijk_NoDecode", "Ijk_EmFail")
"""VEX cannot decode the instruction, or thinks that the processor does not have it."""

_WIDENING = {"Iop_32Uto64": (32, False), "Iop_32Sto64": (32, True), "Iop_16Uto64": (16, False)}
_WIDENING.update({"Iop_16Sto64": (16, True), "Iop_8Uto64": (8, False), "Iop_8Sto64": (8, True)})
_WIDENING.update({"Iop_8Uto32": (8, False), "Iop_8Sto32": (8, True)})
_WIDENING.update({"Iop_16Uto32": (16, False), "Iop_16Sto32": (16, True)})
_COPIES = ("Iop_ReinterpI64asF64", "Iop_ReinterpF64asI64")
_NARROWING = {"Iop_64to32": 32, "Iop_64to16": 16, "Iop_64to8": 8, "Iop_32to16": 16, "Iop_32to8": 8}
_CONDITIONS = ("amd64g_calculate_condition", "arm64g_calculate_condition", "s390_calculate_cond")
"""What VEX calls to find out whether a condition holds."""
_COMPARISONS = {
    "Iop_CmpEQ64": "==",
    "Iop_CmpNE64": "!=",
    "Iop_CmpEQ32": "==",
    "Iop_CmpNE32": "!=",
    "Iop_CmpLE64U": "<=",
    "Iop_CmpLE32U": "<=",
    "Iop_CmpLT64U": "<",
    "Iop_CmpLT32U": "<",
}


def check_installed() -> None:
    """Check that what decodes code, the extra ``code``, is installed and can be loaded.

    :raises MissingExtraError: it is not, or cannot.
    """
    for name in _PACKAGES:
        if find_spec(name) is None:
            raise MissingExtraError(name)
        reason = _why_not_loaded(name)
        if reason:
            raise MissingExtraError(name, reason=reason)


@cache
def _why_not_loaded(name: str) -> str:
    """Return why a package cannot be loaded, found out once; an empty text if it can.

    A debugger's own Python can find the package in an environment, and a library of another version elsewhere.
    """
    try:
        import_module(name)
    except Exception as error:  # noqa: BLE001  # cffi raises no other
        return str(error) or type(error).__name__
    return ""


class Lifter:
    """Decodes the instructions of one machine.

    :raises MissingExtraError: see :func:`check_installed`.
    """

    def __init__(self, machine: Machine) -> None:
        check_installed()
        import pyvex
        from pyvex import arches

        self._pyvex = pyvex
        self._arch: Any = copy(getattr(arches, machine.vex_name))
        if self._arch.name == "ARM64":  # what pyvex looks its lifters up by
            self._arch.name = "AARCH64"
        self.machine = machine
        self._known: dict[bytes, Instruction] = {}
        self._sizes: dict[bytes, tuple[int, ...]] = {}
        """The sizes that instructions were found to have, by two bytes; no instruction is the beginning of another."""
        self._shapes = Shapes()
        self._registers = _register_numbers(self._arch, machine)
        self._disassembler = Disassembler(machine)

    def instruction(self, code: bytes, at: int) -> Instruction:
        """Return the instruction at an offset of some bytes of code.

        One that cannot be decoded is of kind ``STOP`` and has the size 0 where that is not known either.
        """
        known = self._known
        start = code[at : at + 2]
        for size in self._sizes.get(start, ()):
            found = known.get(code[at : at + size])
            if found is not None:
                return found
        raw = code[at : at + self.machine.max_size]
        found = known.get(raw[:1])  # the second byte is the next instruction's
        if found is None:
            found = self._decoded(raw)
            if not found.size:
                return found
            if len(known) >= _MAX_CACHED:
                known.clear()
            known[raw[: found.size]] = found
        self._sizes[start] = tuple(dict.fromkeys((*self._sizes.get(start, ()), found.size)))
        return found

    def _decoded(self, raw: bytes) -> Instruction:
        found = self.machine.special(raw)
        if found is not None:
            return found
        shape = self.machine.shape(raw)
        if shape is None:
            return self.lifted(raw)
        found = self._shapes.instruction(shape)
        if found is None:
            found = self.lifted(raw)
            self._shapes.learn(shape, found)
        return found

    def lifted(self, raw: bytes) -> Instruction:
        """Lift the instruction at the start of some bytes by VEX, without help from those lifted before."""
        found = self._lifted_at(BASES[0], raw)
        if found is None:
            return self._undecoded(raw)
        if not _is_relative(found):
            return found
        other = self._lifted_at(BASES[1], raw)
        if other == found:
            return found
        # What is relative at one of them only is the program's own constant.
        return self.machine.anything(found.size) if other is None or _is_relative(other) else other

    def _lifted_at(self, base: int, raw: bytes) -> Instruction | None:
        """Return the instruction at the start of some bytes as VEX has it at an address; ``None``: not at all."""
        try:
            block = self._pyvex.lift(raw + bytes(16), base, self._arch, max_bytes=len(raw), max_inst=1, opt_level=0)
        except self._pyvex.PyVEXError:
            return None
        if not 0 < block.size <= len(raw) or block.jumpkind in _UNDECODED:
            return None
        return _Translation(block, base, self._registers, self.machine, raw).instruction()

    def _undecoded(self, raw: bytes) -> Instruction:
        """Return what can be said of an instruction that VEX does not know."""
        found = self._disassembler.decode(raw)
        if found is None or found.may_jump:
            return STOP
        return self.machine.describe(found) or self.machine.anything(found.size)


def _register_numbers(arch: Any, machine: Machine) -> dict[int, int]:
    """Return the numbers of registers by their offsets in VEX's guest state."""
    numbers = {arch.get_register_offset(name): number for name, number in machine.vex_registers.items()}
    numbers[arch.ip_offset] = _PC
    low, high = (8, 0) if machine.big_endian else (0, 8)
    for name, number in machine.vex_vectors.items():
        offset = arch.get_register_offset(name)
        # s390x: a floating-point register is the upper half of a vector register.
        numbers[offset + low] = number if not machine.big_endian else number + HIGH
        numbers[offset + high] = number + HIGH if not machine.big_endian else number
    return numbers


class _Translation:
    """Makes an :class:`Instruction` of the block that VEX has for it."""

    def __init__(self, block: Any, base: int, registers: dict[int, int], machine: Machine, raw: bytes) -> None:
        self._block = block
        self._base = base
        self._registers = registers
        self._machine = machine
        self._relative = PAGE_RELATIVE if machine.is_page_relative(raw) else PC_RELATIVE
        self._temporaries: dict[int, Expression] = {}
        self._vectors: dict[int, tuple[Expression, Expression]] = {}
        self._conditions: dict[int, Condition | None] = {}
        self._helpers: dict[int, Condition] = {}
        self._now: dict[int, Expression] = {}
        self._puts: list[tuple[int, Expression]] = []
        self._stores: list[Store] = []
        self._exits: list[Exit] = []
        self._types = block.tyenv
        self._repeats = self._swaps = False
        self._may_do_anything = False

    def instruction(self) -> Instruction:
        block = self._block
        for statement in block.statements:
            if statement.tag not in _WITHOUT_EFFECT:
                handler = _STATEMENTS.get(statement.tag)
                if handler is None:
                    return self._machine.anything(block.size)
                handler(self, statement)
        if self._may_do_anything:
            return self._machine.anything(block.size)
        kind = _ENDS.get(block.jumpkind, Kind.STOP)
        target: Expression | None = self._value(block.next)
        if self._repeats or (kind is Kind.JUMP and target == (PC_RELATIVE, 0)):
            return self._repeated()
        if kind is Kind.RETURN and self._machine.returns_through is not None:
            # VEX takes each jump to what a register holds for a return.
            kind = Kind.RETURN if target == (REGISTER, self._machine.returns_through, 0) else Kind.JUMP
        if kind is Kind.JUMP and target == (PC_RELATIVE, block.size):
            kind, target = Kind.NEXT, None
        if kind in (Kind.STOP, Kind.TRAP):
            target = None
        link = None
        if kind is Kind.CALL:
            link = next((number for number, value in self._puts if value == (PC_RELATIVE, block.size)), None)
        return Instruction(block.size, kind, tuple(self._puts), tuple(self._stores), tuple(self._exits), target, link)

    def _repeated(self) -> Instruction:
        """Return an instruction that VEX has as one round of a loop."""
        written = dict(self._puts)
        stores = tuple((address, RESULT, ANYTHING) for address, _, _ in self._stores)
        return writing(self._block.size, written, stores)

    # Statements.

    def _assign(self, statement: Any) -> None:
        kind = self._types.lookup(statement.tmp)
        if kind == "Ity_V128":
            self._vectors[statement.tmp] = self._vector(statement.data)
        elif kind == "Ity_I1":
            self._conditions[statement.tmp] = self._condition(statement.data)
        else:
            self._temporaries[statement.tmp] = self._value(statement.data)
            condition = self._helper(statement.data)
            if condition is not None:
                self._helpers[statement.tmp] = condition

    def _put(self, statement: Any) -> None:
        offset, data = statement.offset, statement.data
        kind = self._type(data)
        if kind == "Ity_V128":
            first, second = self._vector(data)
            if self._machine.big_endian:
                first, second = second, first
            self._write(offset, first)
            self._write(offset + 8, second)
        elif kind in ("Ity_I64", "Ity_F64"):
            self._write(offset, self._value(data))
        else:
            for place in range(offset & ~7, offset + _SIZES.get(kind, 8), 8):
                self._write(place, RESULT)

    def _put_any(self, statement: Any) -> None:
        # An indexed write: the x87 stack, which holds nothing of interest.
        array = statement.descr
        end = array.base + array.nElems * _SIZES.get(str(array.elemTy), 32)
        self._may_do_anything |= any(array.base - 8 < offset < end for offset in self._registers)

    def _write(self, offset: int, value: Expression) -> None:
        number = self._registers.get(offset)
        if number is not None:
            self._now[number] = value
            if number != _PC:
                self._puts.append((number, value))

    def _store(self, statement: Any) -> None:
        self._stored(self._value(statement.addr), statement.data)

    def _stored(self, address: Expression, data: Any) -> None:
        kind = self._type(data)
        if kind == "Ity_V128":
            first, second = self._vector(data)
            if self._machine.big_endian:
                first, second = second, first
            self._stores += [(address, 8, first), (_sum(address, 8), 8, second)]
        else:
            size = _SIZES.get(kind, 8)
            value = self._value(data)
            # Barriers and stack probes write back what is there: lock orq $0,(%rsp).
            if value != (LOAD, address, size, False):
                self._stores.append((address, size, value if kind in ("Ity_I64", "Ity_F64") else RESULT))

    def _store_guarded(self, statement: Any) -> None:
        self._stores.append((self._value(statement.addr), _SIZES.get(self._type(statement.data), 8), ANYTHING))

    def _load_guarded(self, statement: Any) -> None:
        self._temporaries[statement.dst] = ANYTHING

    def _compare_and_swap(self, statement: Any) -> None:
        self._swaps = True
        size, address = _SIZES.get(self._type(statement.dataLo), 8), self._value(statement.addr)
        if self._value(statement.dataLo) != (LOAD, address, size, False) or statement.dataHi is not None:
            self._stores.append((address, size, ANYTHING))
        self._temporaries[statement.oldLo] = ANYTHING if size == 8 else RESULT
        if statement.oldHi != 0xFFFFFFFF:
            self._temporaries[statement.oldHi] = ANYTHING

    def _load_linked(self, statement: Any) -> None:
        if statement.storedata is None:
            self._temporaries[statement.result] = self._loaded(
                self._value(statement.addr), self._types.lookup(statement.result)
            )
        else:
            # It may fail: then nothing is stored.
            size = _SIZES.get(self._type(statement.storedata), 8)
            self._stores.append((self._value(statement.addr), size, ANYTHING))
            self._temporaries[statement.result] = RESULT

    def _dirty(self, statement: Any) -> None:
        if statement.tmp != 0xFFFFFFFF:
            self._temporaries[statement.tmp] = RESULT
        if statement.mFx in ("Ifx_Write", "Ifx_Modify"):
            is_sized = not str(statement.cee.name).startswith(self._machine.unsized_helpers)
            size = statement.mSize if is_sized else ANYTHING
            self._stores.append((self._value(statement.mAddr), size, ANYTHING))
        if statement.nFxState:
            # VEX declares which parts of its state a helper writes; pyvex has only their number.
            name, known = str(statement.cee.name), self._machine.helpers
            written = next((registers for start, registers in known.items() if name.startswith(start)), None)
            self._may_do_anything |= written is None
            vectors = self._machine.vex_vectors.values()
            for number in (*(written or ()), *vectors, *(number + HIGH for number in vectors)):
                self._now[number] = ANYTHING
                self._puts.append((number, ANYTHING))

    def _exit(self, statement: Any) -> None:
        if statement.jumpkind in _SIGNALS:
            return  # it ends there
        self._may_do_anything |= _ENDS.get(statement.jumpkind) is not Kind.JUMP
        guard = statement.guard
        condition = self._conditions.get(guard.tmp) if guard.tag == "Iex_RdTmp" else None
        target = self._constant(statement.dst.value)
        if target == (PC_RELATIVE, 0):
            # After a compare-and-swap that failed, nothing has happened yet; nor has it where the instruction faults.
            self._repeats |= statement.jumpkind == "Ijk_Boring" and not self._swaps
        else:
            self._exits.append(Exit(target, len(self._puts), condition))

    # Expressions.

    def _type(self, data: Any) -> str:
        return str(data.result_type(self._types))

    def _constant(self, value: Any) -> Expression:
        if not isinstance(value, int):
            return RESULT
        value &= _MASK
        if -_REACH <= value - self._base <= _REACH:
            # What an instruction for pages gives is a multiple of their size; the other is the next instruction.
            return (PC_RELATIVE if value % _PAGE else self._relative, value - self._base)
        return (CONSTANT, value - (1 << 64) if value >> 63 else value)

    def _value(self, data: Any) -> Expression:
        tag = data.tag
        if tag == "Iex_RdTmp":
            return self._temporaries.get(data.tmp, RESULT)
        if tag == "Iex_Const":
            return self._constant(data.con.value)
        if tag == "Iex_Get":
            return self._read(data.offset, data.ty)
        if tag == "Iex_Binop":
            return self._binary(data)
        if tag == "Iex_Unop":
            return self._unary(data)
        if tag == "Iex_Load":
            return self._loaded(self._value(data.addr), data.ty)
        if tag == "Iex_ITE":
            return self._choice(data)
        if tag in ("Iex_Triop", "Iex_Qop", "Iex_CCall"):
            return RESULT
        return RESULT if tag == "Iex_GetI" else ANYTHING

    def _read(self, offset: int, kind: str) -> Expression:
        size = _SIZES.get(kind, 8)
        if size >= 8:
            number = self._registers.get(offset)
            return RESULT if number is None else self._current(number)
        # The lowest bits of a register have its address on a little-endian machine; others are of no interest.
        whole = self._registers.get(offset & ~7)
        is_lowest = offset & 7 == (8 - size if self._machine.big_endian else 0)
        return (EXTEND, self._current(whole), 8 * size, False) if whole is not None and is_lowest else RESULT

    def _current(self, number: int) -> Expression:
        return self._now.get(number) or (REGISTER, number, 0)

    def _loaded(self, address: Expression, kind: str) -> Expression:
        size = _SIZES.get(kind, 8)
        if size > 8:
            return RESULT
        # What the instruction itself has stored is not followed.
        return (LOAD, address, size, False) if not self._stores else ANYTHING if size == 8 else RESULT

    def _choice(self, data: Any) -> Expression:
        left, right = self._value(data.iftrue), self._value(data.iffalse)
        return left if left == right else (CHOICE, left, right)

    def _unary(self, data: Any) -> Expression:
        operation, operand = data.op, data.args[0]
        if operation in _COPIES:
            return self._value(operand)
        if operation in ("Iop_V128to64", "Iop_V128HIto64"):
            return self._vector(operand)[operation == "Iop_V128HIto64"]
        if operation in _WIDENING:
            bits, signed = _WIDENING[operation]
            return _extend(self._value(operand), bits, signed)
        if operation in _NARROWING:
            return _extend(self._value(operand), _NARROWING[operation], False)
        return _mixed(self._value(operand)) if self._type(data) == "Ity_I64" else RESULT

    def _binary(self, data: Any) -> Expression:
        operation = data.op
        if not operation.endswith("64") or self._type(data) != "Ity_I64":
            return self._binary_narrow(data)
        left, right = self._value(data.args[0]), self._value(data.args[1])
        if operation == "Iop_Add64":
            return _add(left, right)
        if operation == "Iop_Sub64":
            return _add(left, (CONSTANT, -right[1])) if right[0] == CONSTANT else (SUBTRACT, left, right)
        if operation in _FOLDED and left[0] == CONSTANT == right[0]:
            return self._constant(_FOLDED[operation](left[1], right[1]))
        if operation == "Iop_And64":
            if left[0] == CONSTANT:
                left, right = right, left
            return (AND, left, right[1]) if right[0] == CONSTANT else _mixed(left, right)
        if operation == "Iop_Xor64" and left == right:
            return (CONSTANT, 0)
        if operation == "Iop_Or64" and CONSTANT in (left[0], right[0]):
            return self._or(*((right, left[1]) if left[0] == CONSTANT else (left, right[1])))
        if operation in ("Iop_Shl64", "Iop_Sar64", "Iop_Shr64"):
            return _shifted(operation, left, right)
        return _mixed(left, right)

    def _or(self, operand: Expression, constant: int) -> Expression:
        if not constant:
            return operand
        # VEX for AArch64 packs a condition and what set the condition code into one number.
        if operand == (REGISTER, CC_OPERATION, 0):
            return (REGISTER, CC_OPERATION, constant)
        return _mixed(operand)

    def _binary_narrow(self, data: Any) -> Expression:
        if data.op in ("Iop_Xor32", "Iop_Sub32") and str(data.args[0]) == str(data.args[1]):
            return (CONSTANT, 0)
        if data.op in _NEUTRAL_ZERO and self._value(data.args[1]) == (CONSTANT, 0):
            return self._value(data.args[0])
        return RESULT

    def _vector(self, data: Any) -> tuple[Expression, Expression]:
        """Return the low and the high half of an expression of 128 bits."""
        if data.tag == "Iex_RdTmp":
            return self._vectors.get(data.tmp, (RESULT, RESULT))
        if data.tag == "Iex_Get":
            first, second = self._read(data.offset, "Ity_I64"), self._read(data.offset + 8, "Ity_I64")
            return (second, first) if self._machine.big_endian else (first, second)
        if data.tag == "Iex_Load":
            address = self._value(data.addr)
            first, second = self._loaded(address, "Ity_I64"), self._loaded(_sum(address, 8), "Ity_I64")
            return (second, first) if self._machine.big_endian else (first, second)
        if data.tag == "Iex_Unop" and data.op == "Iop_64UtoV128":
            return self._value(data.args[0]), (CONSTANT, 0)
        if data.tag == "Iex_Binop":
            if data.op == "Iop_64HLtoV128":
                return self._value(data.args[1]), self._value(data.args[0])
            if data.op in ("Iop_InterleaveLO64x2", "Iop_InterleaveHI64x2"):
                half = data.op == "Iop_InterleaveHI64x2"
                return self._vector(data.args[1])[half], self._vector(data.args[0])[half]
        return RESULT, RESULT

    def _condition(self, data: Any) -> Condition | None:
        if data.tag == "Iex_RdTmp":
            return self._conditions.get(data.tmp)
        if data.tag == "Iex_Unop" and data.op == "Iop_Not1":
            inner = self._condition(data.args[0])
            return inner and inner._replace(relation=INVERSE[inner.relation])
        if data.tag == "Iex_Unop" and data.op in ("Iop_64to1", "Iop_32to1"):
            return self._helper(data.args[0])
        if data.tag == "Iex_Binop" and data.op in _COMPARISONS:
            left, right = data.args
            inner = self._helper(left)
            if inner is not None and right.tag == "Iex_Const" and right.con.value == 0:
                relation = _COMPARISONS[data.op]
                return inner if relation == "!=" else inner._replace(relation=INVERSE[inner.relation])
            return Condition(_COMPARISONS[data.op], self._value(left), self._value(right), None)
        return None

    def _helper(self, data: Any) -> Condition | None:
        """Return the condition that a call of VEX's for the condition code stands for."""
        if data.tag == "Iex_RdTmp":
            return self._helpers.get(data.tmp)
        if data.tag != "Iex_CCall" or data.cee.name not in _CONDITIONS:
            return None
        name, arguments = str(data.cee.name), data.args
        constants = [arguments[0].con.value] if arguments[0].tag == "Iex_Const" else []
        if name == "arm64g_calculate_condition":  # condition and operation in one
            joined = self._value(arguments[0])
            constants, operation = [joined[-1]] if joined[0] == REGISTER else [], (REGISTER, CC_OPERATION, 0)
        else:
            operation = self._value(arguments[1])
        relation = self._machine.condition(name, constants) if constants else None
        if relation is None:
            return None
        first = relation[1]
        return Condition(relation[0], self._value(arguments[first]), self._value(arguments[first + 1]), operation)


def _is_relative(found: tuple[Any, ...]) -> bool:
    """Return whether anything in an instruction, or a part of one, is relative to the instruction's address."""
    if len(found) == 2 and found[0] in (PC_RELATIVE, PAGE_RELATIVE) and isinstance(found[1], int):
        return True
    return any(_is_relative(part) for part in found if isinstance(part, tuple))


def _add(left: Expression, right: Expression) -> Expression:
    if left[0] == CONSTANT:
        left, right = right, left
    return _sum(left, right[1]) if right[0] == CONSTANT else (ADD, left, right)


def _sum(operand: Expression, offset: int) -> Expression:
    if not offset or operand[0] in (COMPUTED,):
        return operand
    if operand[0] == REGISTER:
        return (REGISTER, operand[1], operand[2] + offset)
    if operand[0] in (CONSTANT, PC_RELATIVE, PAGE_RELATIVE):
        return (operand[0], operand[1] + offset)
    return (ADD, operand, (CONSTANT, offset))


def _extend(operand: Expression, bits: int, signed: bool) -> Expression:
    if operand[0] == CONSTANT:
        value = operand[1] & (1 << bits) - 1
        return (CONSTANT, value - (1 << bits) if signed and value >> (bits - 1) else value)
    if operand[0] == LOAD and 8 * operand[2] == bits:
        return (LOAD, operand[1], operand[2], signed)
    if operand[0] == EXTEND:
        operand = operand[1] if operand[2] >= bits else operand
    return operand if operand == RESULT else (EXTEND, operand, bits, signed)


def _shifted(operation: str, left: Expression, right: Expression) -> Expression:
    if right[0] != CONSTANT or not 0 <= right[1] < 64:
        return _mixed(left, right)
    if not right[1]:
        return left
    if operation == "Iop_Shl64":
        return (SHIFT_LEFT, left, right[1])
    if left[0] == SHIFT_LEFT and left[2] == right[1]:
        return _extend(left[1], 64 - right[1], operation == "Iop_Sar64")
    return _mixed(left)


def _mixed(*operands: Expression) -> Expression:
    known: list[Expression] = []
    for operand in operands:
        known += operand[1] if operand[0] == MIXED else [operand]
    wanted = tuple(dict.fromkeys(operand for operand in known if operand[0] not in (COMPUTED, CONSTANT, EXTEND)))
    if not wanted:
        return RESULT
    return (MIXED, wanted) if len(wanted) <= _MAX_OPERANDS else ANYTHING


_SIZES = {
    "Ity_I1": 1,
    "Ity_I8": 1,
    "Ity_I16": 2,
    "Ity_F16": 2,
    "Ity_I32": 4,
    "Ity_F32": 4,
    "Ity_D32": 4,
    "Ity_I64": 8,
    "Ity_F64": 8,
    "Ity_D64": 8,
    "Ity_I128": 16,
    "Ity_F128": 16,
    "Ity_D128": 16,
    "Ity_V128": 16,
    "Ity_V256": 32,
}
_FOLDED = {
    "Iop_And64": lambda left, right: left & right,
    "Iop_Or64": lambda left, right: left | right,
    "Iop_Xor64": lambda left, right: left ^ right,
    "Iop_Mul64": lambda left, right: left * right,
}
_NEUTRAL_ZERO = ("Iop_Or32", "Iop_Add32", "Iop_Sub32", "Iop_Xor32")
_WITHOUT_EFFECT = ("Ist_NoOp", "Ist_IMark", "Ist_AbiHint", "Ist_MBE")
_SIGNALS = (
    "Ijk_SigTRAP",
    "Ijk_SigILL",
    "Ijk_SigSEGV",
    "Ijk_SigBUS",
    "Ijk_SigFPE",
    "Ijk_SigFPE_IntDiv",
    "Ijk_SigFPE_IntOvf",
)
"""Jump kinds of exits that end the program, or come back in a signal handler's frame."""
_STATEMENTS = {
    "Ist_WrTmp": _Translation._assign,
    "Ist_Put": _Translation._put,
    "Ist_PutI": _Translation._put_any,
    "Ist_Store": _Translation._store,
    "Ist_StoreG": _Translation._store_guarded,
    "Ist_LoadG": _Translation._load_guarded,
    "Ist_CAS": _Translation._compare_and_swap,
    "Ist_LLSC": _Translation._load_linked,
    "Ist_Dirty": _Translation._dirty,
    "Ist_Exit": _Translation._exit,
}
