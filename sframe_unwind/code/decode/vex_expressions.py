"""Translates expressions of VEX to those of :class:`~sframe_unwind.code.decode.instruction.Instruction`."""

from __future__ import annotations

import re
from typing import Any

from sframe_unwind.code.decode.folding import add, bounded, extend, mixed, moved, shifted, unknown
from sframe_unwind.code.decode.instruction import (
    AND,
    CC_OPERATION,
    CHOICE,
    CONSTANT,
    EXTEND,
    INVERSE,
    LOAD,
    PAGE_RELATIVE,
    PC_RELATIVE,
    REGISTER,
    REST,
    RESULT,
    SUBTRACT,
    Condition,
    Expression,
    Store,
)
from sframe_unwind.code.decode.machines import Machine

_REACH = 1 << 33
_PAGE = 0x1000
_WORD = 8
_HALF_WORD_BITS = 16
_MASK = (1 << 64) - 1

SIZES = {
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
VECTORS = ("Ity_V128", "Ity_V256")
_WIDENING = {"Iop_32Uto64": (32, False), "Iop_32Sto64": (32, True), "Iop_16Uto64": (16, False)}
_WIDENING.update({"Iop_16Sto64": (16, True), "Iop_8Uto64": (8, False), "Iop_8Sto64": (8, True)})
_WIDENING.update({"Iop_8Uto32": (8, False), "Iop_8Sto32": (8, True)})
_WIDENING.update({"Iop_16Uto32": (16, False), "Iop_16Sto32": (16, True)})
_COPIES = ("Iop_ReinterpI64asF64", "Iop_ReinterpF64asI64")
_NARROWING = {"Iop_64to32": 32, "Iop_64to16": 16, "Iop_64to8": 8, "Iop_32to16": 16, "Iop_32to8": 8}
_CONDITIONS = ("amd64g_calculate_condition", "arm64g_calculate_condition", "s390_calculate_cond")
"""The functions that VEX calls to evaluate a condition."""
_FLAGS = ("_rflags_", "_condition", "_flag", "_cond", "_cc")
"""Parts of the names of functions that compute no more than condition codes."""
IGNORED = -2
"""The number of parts of VEX's guest state that hold no value of interest."""
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
_FOLDED = {
    "Iop_And64": lambda left, right: left & right,
    "Iop_Or64": lambda left, right: left | right,
    "Iop_Xor64": lambda left, right: left ^ right,
    "Iop_Mul64": lambda left, right: left * right,
}
_PARTS = re.compile(r"Iop_\d+(HL|HI)to")
"""Operations that cut a number into parts, or put parts together."""
_LANES = {f"Iop_V256to64_{number}": number for number in range(4)}
_NEUTRAL_ZERO = ("Iop_Or32", "Iop_Add32", "Iop_Sub32", "Iop_Xor32")


class Operands:
    """The expressions in VEX's block for one instruction.

    :param base: the address of the instruction.
    :param registers: numbers of registers, by their offsets in VEX's guest state.
    """

    def __init__(self, block: Any, base: int, registers: dict[int, int], machine: Machine, raw: bytes) -> None:
        self._base = base
        self._registers = registers
        self._machine = machine
        self._relative = PAGE_RELATIVE if machine.is_page_relative(raw) else PC_RELATIVE
        self._types = block.tyenv
        self._words_of_vectors = machine.words_of_vectors
        self.temporaries: dict[int, Expression] = {}
        self._vectors: dict[int, tuple[Expression, ...]] = {}
        self._conditions: dict[int, Condition | None] = {}
        self._helpers: dict[int, Condition] = {}
        self.now: dict[int, Expression] = {}
        """The values that the block has written to registers so far."""
        self.stores: list[Store] = []
        """The stores of the block so far."""

    def assign(self, temporary: int, data: Any) -> None:
        """Record an expression as the value of one of the block's temporaries."""
        kind = self._types.lookup(temporary)
        if kind in VECTORS:
            self._vectors[temporary] = tuple(map(bounded, self.lanes(data)))
        elif kind == "Ity_I1":
            self._conditions[temporary] = self.condition(data)
        else:
            self.temporaries[temporary] = bounded(self.value(data))
            condition = self._helper(data)
            if condition is not None:
                self._helpers[temporary] = condition

    def type(self, data: Any) -> str:
        """Return the name of an expression's type in VEX."""
        return str(data.result_type(self._types))

    def constant(self, value: Any) -> Expression:
        """Return a constant of VEX, relative to the instruction if it is near its address."""
        if not isinstance(value, int):
            return RESULT
        value &= _MASK
        if -_REACH <= value - self._base <= _REACH:
            # An instruction for pages gives a multiple of their size; the other constant is the next instruction's
            # address.
            return (PC_RELATIVE if value % _PAGE else self._relative, value - self._base)
        return (CONSTANT, value - (1 << 64) if value >> 63 else value)

    def value(self, data: Any) -> Expression:
        """Return an expression of at most 64 bits."""
        tag = data.tag
        if tag == "Iex_RdTmp":
            return self.temporaries.get(data.tmp, RESULT)
        if tag == "Iex_Const":
            return self.constant(data.con.value)
        if tag == "Iex_Get":
            return self.read(data.offset, data.ty)
        if tag == "Iex_Binop":
            return self._binary(data)
        if tag == "Iex_Unop":
            return self._unary(data)
        if tag == "Iex_Load":
            return self.loaded(self.value(data.addr), data.ty)
        if tag == "Iex_ITE":
            return self._choice(data)
        if tag == "Iex_GetI":
            return (REGISTER, REST, 0) if SIZES.get(self.type(data), 8) >= _WORD else RESULT
        if tag == "Iex_CCall" and any(part in str(data.cee.name) for part in _FLAGS):
            return RESULT
        return self._computed(data)

    def _computed(self, data: Any) -> Expression:
        """Return a result of an operation that is not followed."""
        found = mixed(*(operand for argument in data.args for operand in self._words(argument, data)))
        size = SIZES.get(self.type(data), _WORD)
        if size >= _WORD:
            return found
        return extend(found, 8 * size, False) if _PARTS.match(getattr(data, "op", "")) else RESULT

    def _words(self, data: Any, user: Any) -> tuple[Expression, ...]:
        """Return the words of an operand, or the word of which it is a part if its user puts parts together."""
        kind = self.type(data)
        if kind in VECTORS:
            return self.lanes(data)
        found = self.value(data)
        if found[0] == EXTEND and _PARTS.match(getattr(user, "op", "")):
            found = found[1]
        return (found,) if found[0] != CONSTANT else ()

    def read(self, offset: int, kind: str) -> Expression:
        """Return the contents of a place in VEX's guest state at the present position in the block."""
        size = SIZES.get(kind, 8)
        if size >= 8:
            number = self._registers.get(offset, REST)
            return RESULT if number == IGNORED else self.current(number)
        # On a little-endian machine, the lowest bits of a register have its address; other parts are of no interest.
        whole = self._registers.get(offset & ~7)
        is_lowest = offset & 7 == (8 - size if self._machine.big_endian else 0)
        return (EXTEND, self.current(whole), 8 * size, False) if whole is not None and is_lowest else RESULT

    def current(self, number: int) -> Expression:
        """Return the value of a register at the present position in the block."""
        return self.now.get(number) or (REGISTER, number, 0)

    def loaded(self, address: Expression, kind: str) -> Expression:
        """Return the contents of memory at an address."""
        found = (LOAD, address, SIZES.get(kind, 8), False)
        if not self.stores:
            return found
        # It is not followed which of the instruction's own stores it reads.
        return RESULT if found[2] < _WORD else unknown(found, *(value for _, _, value in self.stores))

    def kept(self, address: Expression, size: int) -> Expression:
        """Return the contents of memory before the instruction, which an atomic one finds."""
        return (LOAD, address, size, False) if size == _WORD else RESULT

    def _choice(self, data: Any) -> Expression:
        left, right = self.value(data.iftrue), self.value(data.iffalse)
        return left if left == right else (CHOICE, left, right)

    def _unary(self, data: Any) -> Expression:
        operation, operand = data.op, data.args[0]
        if operation in _COPIES:
            return self.value(operand)
        if operation in ("Iop_V128to64", "Iop_V128HIto64"):
            return self.lanes(operand)[operation == "Iop_V128HIto64"]
        if operation in _LANES:
            return self.lanes(operand)[_LANES[operation]]
        if operation in _WIDENING:
            bits, signed = _WIDENING[operation]
            return extend(self.value(operand), bits, signed)
        if operation in _NARROWING:
            return extend(self.value(operand), _NARROWING[operation], False)
        return self._computed(data)

    def _binary(self, data: Any) -> Expression:
        operation = data.op
        if not operation.endswith("64") or self.type(data) != "Ity_I64":
            return self._binary_narrow(data)
        left, right = self.value(data.args[0]), self.value(data.args[1])
        if operation == "Iop_Add64":
            return add(left, right)
        if operation == "Iop_Sub64":
            return add(left, (CONSTANT, -right[1])) if right[0] == CONSTANT else (SUBTRACT, left, right)
        if operation in _FOLDED and left[0] == CONSTANT == right[0]:
            return self.constant(_FOLDED[operation](left[1], right[1]))
        if operation in ("Iop_And64", "Iop_Or64") and left == right:
            return left
        if operation == "Iop_And64":
            if left[0] == CONSTANT:
                left, right = right, left
            return (AND, left, right[1]) if right[0] == CONSTANT else mixed(left, right)
        if operation == "Iop_Xor64" and left == right:
            return (CONSTANT, 0)
        if operation == "Iop_Or64" and CONSTANT in (left[0], right[0]):
            return self._or(*((right, left[1]) if left[0] == CONSTANT else (left, right[1])))
        if operation in ("Iop_Shl64", "Iop_Sar64", "Iop_Shr64") and not self._is_of_vector(left):
            return shifted(operation, left, right)
        return self._computed(data)

    def _is_of_vector(self, operand: Expression) -> bool:
        """Return whether an operand is a word of a vector: one that is cut into parts is put together again."""
        return operand[0] == REGISTER and operand[1] in self._words_of_vectors

    def _or(self, operand: Expression, constant: int) -> Expression:
        if not constant:
            return operand
        # For AArch64, VEX packs a condition and the operation that set the condition code into one number.
        if operand == (REGISTER, CC_OPERATION, 0):
            return (REGISTER, CC_OPERATION, constant)
        if operand[0] == AND and not operand[2] & constant:  # movk; as a sum it would look like a table and an index
            return (SUBTRACT, operand, (CONSTANT, -constant))
        return mixed(operand)

    def _binary_narrow(self, data: Any) -> Expression:
        if data.op in ("Iop_Xor32", "Iop_Sub32") and str(data.args[0]) == str(data.args[1]):
            return (CONSTANT, 0)
        if data.op == "Iop_GetElem64x2":
            element = self._element(data.args[1])
            return self._computed(data) if element is None else self.lanes(data.args[0])[element]
        if data.op == "Iop_And8":
            left, right = (self.value(operand) for operand in data.args)
            # The number of bits by which AMD64 shifts.
            return self.constant(left[1] & right[1]) if left[0] == CONSTANT == right[0] else self._computed(data)
        if data.op == "Iop_And16":
            return self._and_half(data)
        if data.op in _NEUTRAL_ZERO and self.value(data.args[1]) == (CONSTANT, 0):
            return self.value(data.args[0])
        return self._computed(data)

    def _and_half(self, data: Any) -> Expression:
        """Return the low 16 bits of a register, rounded down to a multiple of a power of two."""
        left, right = (self.value(operand) for operand in data.args)
        if left[0] != EXTEND or left[2] != _HALF_WORD_BITS or right[0] != CONSTANT:
            return self._computed(data)
        multiple = (1 << _HALF_WORD_BITS) - right[1]
        if multiple & (multiple - 1):
            return self._computed(data)
        return (EXTEND, (AND, left[1], -multiple), _HALF_WORD_BITS, False)

    def lanes(self, data: Any) -> tuple[Expression, ...]:
        """Return the words of an expression of 128 or 256 bits, the lowest first."""
        count = SIZES[self.type(data)] // _WORD
        if data.tag == "Iex_RdTmp":
            return self._vectors.get(data.tmp, (RESULT,) * count)
        if data.tag == "Iex_Const":
            return (RESULT,) * count
        if data.tag in ("Iex_Get", "Iex_Load"):
            if data.tag == "Iex_Get":
                found = tuple(self.read(data.offset + _WORD * number, "Ity_I64") for number in range(count))
            else:
                address = self.value(data.addr)
                found = tuple(self.loaded(moved(address, _WORD * number), "Ity_I64") for number in range(count))
            return found[::-1] if self._machine.big_endian else found
        if data.tag == "Iex_ITE":
            pairs = zip(self.lanes(data.iftrue), self.lanes(data.iffalse))
            return tuple(left if left == right else (CHOICE, left, right) for left, right in pairs)
        known = self._moved_lanes(data) if data.tag != "Iex_GetI" else ((REGISTER, REST, 0),) * count
        return known or (self._computed(data),) * count

    def _moved_lanes(self, data: Any) -> tuple[Expression, ...]:
        """Return the words of a vector that an operation only moves; none if it does anything else."""
        operation, operands = getattr(data, "op", ""), data.args
        if operation == "Iop_64UtoV128":
            return self.value(operands[0]), (CONSTANT, 0)
        if operation == "Iop_SetElem64x2":
            halves, element = list(self.lanes(operands[0])), self._element(operands[1])
            if element is not None:
                halves[element] = self.value(operands[2])
                return tuple(halves)
        if operation in ("Iop_64HLtoV128", "Iop_64x4toV256"):
            return tuple(self.value(operand) for operand in reversed(operands))
        if operation == "Iop_V128HLtoV256":
            return self.lanes(operands[1]) + self.lanes(operands[0])
        if operation in ("Iop_V256toV128_0", "Iop_V256toV128_1"):
            return self.lanes(operands[0])[2:] if operation.endswith("1") else self.lanes(operands[0])[:2]
        if operation in ("Iop_InterleaveLO64x2", "Iop_InterleaveHI64x2"):
            half = operation == "Iop_InterleaveHI64x2"
            return self.lanes(operands[1])[half], self.lanes(operands[0])[half]
        return ()

    def _element(self, data: Any) -> int | None:
        """Return the half of a vector with an element, 0 for the lower; ``None``: its number is not constant."""
        number = self.value(data)
        return number[1] ^ self._machine.big_endian if number[0] == CONSTANT and number[1] < 2 else None

    def condition(self, data: Any) -> Condition | None:
        """Return the condition of an expression of one bit."""
        if data.tag == "Iex_RdTmp":
            return self._conditions.get(data.tmp)
        if data.tag == "Iex_Unop" and data.op == "Iop_Not1":
            inner = self.condition(data.args[0])
            return inner and inner._replace(relation=INVERSE[inner.relation])
        if data.tag == "Iex_Unop" and data.op in ("Iop_64to1", "Iop_32to1"):
            return self._helper(data.args[0])
        if data.tag == "Iex_Binop" and data.op in _COMPARISONS:
            left, right = data.args
            inner = self._helper(left)
            if inner is not None and right.tag == "Iex_Const" and right.con.value == 0:
                relation = _COMPARISONS[data.op]
                return inner if relation == "!=" else inner._replace(relation=INVERSE[inner.relation])
            return Condition(_COMPARISONS[data.op], self.value(left), self.value(right), None)
        return None

    def _helper(self, data: Any) -> Condition | None:
        """Return the condition of a call of VEX's function for the condition code."""
        if data.tag == "Iex_RdTmp":
            return self._helpers.get(data.tmp)
        if data.tag != "Iex_CCall" or data.cee.name not in _CONDITIONS:
            return None
        name, arguments = str(data.cee.name), data.args
        constants = [arguments[0].con.value] if arguments[0].tag == "Iex_Const" else []
        if name == "arm64g_calculate_condition":  # condition and operation in one
            joined = self.value(arguments[0])
            constants, operation = [joined[-1]] if joined[0] == REGISTER else [], (REGISTER, CC_OPERATION, 0)
        else:
            operation = self.value(arguments[1])
        relation = self._machine.condition(name, constants) if constants else None
        if relation is None:
            return None
        first = relation[1]
        return Condition(relation[0], self.value(arguments[first]), self.value(arguments[first + 1]), operation)
