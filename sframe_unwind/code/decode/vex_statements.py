"""Translates VEX's block for an instruction to an :class:`~sframe_unwind.code.decode.instruction.Instruction`."""

from __future__ import annotations

from typing import Any

from sframe_unwind.code.decode.folding import mixed, moved, unknown
from sframe_unwind.code.decode.instruction import (
    ADD,
    AND,
    ANYTHING,
    CHOICE,
    COMPUTED,
    CONSTANT,
    EXTEND,
    HIGH,
    LOAD,
    LOWER,
    PAGE_RELATIVE,
    PARTLY,
    PC_RELATIVE,
    REGISTER,
    REST,
    RESULT,
    Exit,
    Expression,
    Instruction,
    Kind,
    Store,
)
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.decode.machines.base import writing
from sframe_unwind.code.decode.vex_expressions import IGNORED, SIZES, VECTORS, Operands

PC = -1
"""The number of VEX's program counter, which an instruction sets at its end."""

_WORD, _HALF_WORD = 8, 4
"""Sizes in bytes."""
_NEVER_ADDRESS = (COMPUTED, CONSTANT, PC_RELATIVE, PAGE_RELATIVE, EXTEND)
"""Kinds of expressions that are never an address in the frame."""
_PLAIN = ("Iex_RdTmp", "Iex_Const")
"""Arguments of helpers; others point to VEX's guest state."""
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
"""The known kinds of jumps; after any other kind, the next instruction is unknown."""


class Translation:
    """Makes an :class:`Instruction` from VEX's block for it."""

    def __init__(self, block: Any, base: int, registers: dict[int, int], machine: Machine, raw: bytes) -> None:
        self._block = block
        self._registers = registers
        self._machine = machine
        self._operands = Operands(block, base, registers, machine, raw)
        self._puts: list[tuple[int, Expression]] = []
        self._stores = self._operands.stores
        self._exits: list[Exit] = []
        self._types = block.tyenv
        self._assigned: dict[int, Any] = {}
        """The expressions of VEX whose values are the block's temporaries."""
        self._loads_perhaps: list[Expression] = []
        """The loads of vectors on a condition."""
        self._repeats = self._swaps = False
        self._may_do_anything = False

    def instruction(self) -> Instruction:
        """Return the effects of the block; if one of its statements is unknown, any effect is possible."""
        block = self._block
        for statement in block.statements:
            if statement.tag not in _WITHOUT_EFFECT:
                handler = _STATEMENTS.get(statement.tag)
                if handler is None:
                    return self._machine.anything(block.size)
                handler(self, statement)
        if self._may_do_anything:
            return self._machine.anything(block.size)
        if self._loads_perhaps:
            self._mix_vectors()
        kind = _ENDS.get(block.jumpkind, Kind.STOP)
        target: Expression | None = self._operands.value(block.next)
        if self._repeats or (kind is Kind.JUMP and target == (PC_RELATIVE, 0)):
            return self._repeated()
        if kind is Kind.RETURN and self._machine.returns_through is not None:
            # VEX takes each jump to the value of a register for a return.
            kind = Kind.RETURN if target == (REGISTER, self._machine.returns_through, 0) else Kind.JUMP
        if kind is Kind.JUMP and target == (PC_RELATIVE, block.size):
            kind, target = Kind.NEXT, None
        if kind in (Kind.STOP, Kind.TRAP):
            target = None
        link = None
        if kind is Kind.CALL:
            link = next((number for number, value in self._puts if value == (PC_RELATIVE, block.size)), None)
        return Instruction(
            size=block.size,
            kind=kind,
            puts=tuple(self._puts),
            stores=tuple(self._stores),
            exits=tuple(self._exits),
            target=target,
            link=link,
        )

    def _mix_vectors(self) -> None:
        """Let what the instruction loads on a condition be in any vector register that it writes, as by ``fxrstor``.

        VEX nests these loads, with one operand for each register that may be kept.
        """
        vectors = {REST, *self._machine.words_of_vectors}
        for place, (number, _) in enumerate(self._puts):
            if number in vectors:
                self._puts[place] = number, unknown((REGISTER, number, 0), *self._loads_perhaps)

    def _repeated(self) -> Instruction:
        """Return an instruction for which VEX has one round of a loop."""
        written = dict(self._puts)
        stores = tuple(_round(address) for address, _, _ in self._stores)
        return writing(self._block.size, written, stores)

    def _assign(self, statement: Any) -> None:
        self._assigned[statement.tmp] = statement.data
        self._operands.assign(statement.tmp, statement.data)

    def _put(self, statement: Any) -> None:
        offset, data = statement.offset, statement.data
        kind = self._operands.type(data)
        if SIZES.get(kind, _WORD) >= _WORD:
            for place, value in enumerate(self._in_memory(data)):
                self._write(offset + _WORD * place, value)
        elif (cleared := self._cleared(offset, kind, data)) is not None:
            self._write(offset & ~7, cleared)
        elif not self._is_there(offset, kind, data):
            size = SIZES.get(kind, 8)
            is_lower_half = size == _HALF_WORD and offset % _WORD == (_HALF_WORD if self._machine.big_endian else 0)
            # Most code computes with the lower half of a register as with one of half the size.
            is_other = is_lower_half and not self._is_of_register(data, offset & ~7)
            for place in range(offset & ~7, offset + size, 8):
                number = None if is_other else self._registers.get(place)
                kind_of_write = LOWER if is_lower_half else PARTLY
                self._write(place, RESULT if number is None else (kind_of_write, self._operands.current(number)))

    def _is_of_register(self, data: Any, offset: int) -> bool:
        """Return whether a value is computed from a register, given its offset in the state; loads do not count."""
        if data.tag == "Iex_Load":
            return False
        if data.tag == "Iex_RdTmp":
            source = self._assigned.get(data.tmp)
            return source is not None and self._is_of_register(source, offset)
        if data.tag == "Iex_Get":
            return bool(data.offset & ~7 == offset)
        return any(self._is_of_register(part, offset) for part in data.child_expressions)

    def _in_memory(self, data: Any) -> tuple[Expression, ...]:
        """Return the words of an operand in the order in which memory has them."""
        kind = self._operands.type(data)
        if kind not in VECTORS:
            return (self._operands.value(data),) * (SIZES.get(kind, _WORD) // _WORD)
        found = self._operands.lanes(data)
        return found[::-1] if self._machine.big_endian else found

    def _is_there(self, offset: int, kind: str, data: Any) -> bool:
        """Return whether a part of a register is written with its own value, as by `lr %r11,%r11` on s390x."""
        value = self._operands.value(data)
        return value != RESULT and value == self._operands.read(offset, kind)

    def _cleared(self, offset: int, kind: str, data: Any) -> Expression | None:
        """Return the new value of a register that loses some of its lowest bits, as by `nill` on s390x.

        ``None``: anything else is written.
        """
        value, before = self._operands.value(data), self._operands.read(offset, kind)
        if value[0] != EXTEND or before[0] != EXTEND or value[1][:2] != (AND, before[1]) or value[2] != before[2]:
            return None
        cleared: Expression = value[1]
        return cleared

    def _put_any(self, statement: Any) -> None:
        # An indexed write: to the x87 stack.
        array = statement.descr
        end = array.base + array.nElems * SIZES.get(str(array.elemTy), 32)
        self._may_do_anything |= any(array.base - 8 < offset < end for offset in self._registers)
        if SIZES.get(self._operands.type(statement.data), _WORD) >= _WORD:
            self._write_rest(self._operands.value(statement.data))

    def _write(self, offset: int, value: Expression) -> None:
        number = self._registers.get(offset)
        if number is None:
            self._write_rest(value)
        elif number != IGNORED:
            self._operands.now[number] = value
            if number != PC:
                self._puts.append((number, value))

    def _write_rest(self, value: Expression) -> None:
        """Write one of the registers that are not followed: all of them have one number."""
        rest = (REGISTER, REST, 0)
        if value[0] not in (*_NEVER_ADDRESS, REGISTER) or (value[0] == REGISTER and value != rest):
            self._operands.now[REST] = value = (CHOICE, self._operands.current(REST), value)
            self._puts.append((REST, value))

    def _store(self, statement: Any) -> None:
        self._stored(self._operands.value(statement.addr), statement.data)

    def _stored(self, address: Expression, data: Any) -> None:
        size = SIZES.get(self._operands.type(data), _WORD)
        # Barriers and stack probes write memory's own value back: lock orq $0,(%rsp).
        if size < _WORD and self._operands.value(data) != (LOAD, address, size, False):
            self._stores.append((address, size, RESULT))
        words = self._in_memory(data) if size >= _WORD else ()
        for number, value in enumerate(words):
            place = moved(address, _WORD * number)
            if value != (LOAD, place, _WORD, False):
                self._stores.append((place, _WORD, value))

    def _perhaps_stored(self, address: Expression, size: int, value: Expression) -> None:
        """Note a store that depends on a condition: memory may keep its contents."""
        kept = self._operands.kept(address, size)
        self._stores.append((address, size, (CHOICE, value, kept) if size == _WORD else ANYTHING))

    def _store_guarded(self, statement: Any) -> None:
        address = self._operands.value(statement.addr)
        for number, value in enumerate(self._in_memory(statement.data) or (RESULT,)):
            size = min(SIZES.get(self._operands.type(statement.data), _WORD), _WORD)
            self._perhaps_stored(moved(address, _WORD * number), size, value)

    def _load_guarded(self, statement: Any) -> None:
        kind = self._types.lookup(statement.dst)
        loaded = (LOAD, self._operands.value(statement.addr), SIZES[kind] if kind in VECTORS else _WORD, False)
        if kind in VECTORS:
            self._loads_perhaps.append(loaded)
        self._operands.temporaries[statement.dst] = unknown(loaded, self._operands.value(statement.alt))

    def _compare_and_swap(self, statement: Any) -> None:
        self._swaps = True
        size, address = SIZES.get(self._operands.type(statement.dataLo), 8), self._operands.value(statement.addr)
        low, high = address, moved(address, size)
        if self._machine.big_endian and statement.dataHi is not None:
            low, high = high, low
        operands = self._operands
        operands.temporaries[statement.oldLo] = operands.kept(low, size)
        if statement.oldHi != 0xFFFFFFFF:
            operands.temporaries[statement.oldHi] = operands.kept(high, size)
        if statement.dataHi is not None or operands.value(statement.dataLo) != (LOAD, address, size, False):
            self._perhaps_stored(low, size, operands.value(statement.dataLo))
        if statement.dataHi is not None:
            self._perhaps_stored(high, size, operands.value(statement.dataHi))

    def _load_linked(self, statement: Any) -> None:
        if statement.storedata is None:
            self._operands.temporaries[statement.result] = self._operands.loaded(
                self._operands.value(statement.addr), self._types.lookup(statement.result)
            )
        else:
            # It may fail: nothing is stored then.
            size = SIZES.get(self._operands.type(statement.storedata), _WORD)
            address = self._operands.value(statement.addr)
            self._perhaps_stored(address, size, self._operands.value(statement.storedata))
            self._operands.temporaries[statement.result] = RESULT

    def _dirty(self, statement: Any) -> None:
        operands = [self._operands.value(one) for one in statement.args if getattr(one, "tag", "") in _PLAIN]
        if statement.mFx in ("Ifx_Read", "Ifx_Write", "Ifx_Modify"):
            address = self._operands.value(statement.mAddr)
            operands = [one for one in operands if one != address]  # results depend on what is there
            if statement.mFx != "Ifx_Write":
                operands.append((LOAD, address, max(statement.mSize, _WORD), False))
        if statement.nFxState:
            operands.append((REGISTER, REST, 0))
        value = unknown(mixed(*operands), *operands)
        if statement.tmp != 0xFFFFFFFF:
            self._operands.temporaries[statement.tmp] = value
        if statement.mFx in ("Ifx_Write", "Ifx_Modify"):
            is_sized = not str(statement.cee.name).startswith(self._machine.unsized_helpers)
            size = statement.mSize if is_sized else ANYTHING
            self._stores.append((self._operands.value(statement.mAddr), size, value))
        if statement.nFxState:
            # VEX declares which parts of its state a helper writes; pyvex has only their number.
            name, known = str(statement.cee.name), self._machine.helpers
            written = next((registers for start, registers in known.items() if name.startswith(start)), None)
            self._may_do_anything |= written is None
            vectors = self._machine.vex_vectors.values()
            for number in (*(written or ()), *vectors, *(number + HIGH for number in vectors), REST):
                self._operands.now[number] = changed = unknown((REGISTER, number, 0), value)
                self._puts.append((number, changed))

    def _exit(self, statement: Any) -> None:
        if statement.jumpkind in _SIGNALS:
            return  # the program ends there
        self._may_do_anything |= _ENDS.get(statement.jumpkind) is not Kind.JUMP
        condition = self._operands.condition(statement.guard)
        target = self._operands.constant(statement.dst.value)
        if target == (PC_RELATIVE, 0):
            # After a failed compare-and-swap, nothing has happened yet, nor if the instruction faults.
            self._repeats |= statement.jumpkind == "Ijk_Boring" and not self._swaps
        else:
            self._exits.append(Exit(target, len(self._puts), len(self._stores), condition))


def _round(address: Expression) -> Store:
    """Return the possible stores of all rounds of a loop, given those of one: an address that advances may be any."""
    if address[0] == ADD and RESULT in address:
        return (address[2] if address[1] == RESULT else address[1], ANYTHING, ANYTHING)
    return address, RESULT, ANYTHING


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
"""Jump kinds of exits that end the program, or return in a signal handler's frame."""
_STATEMENTS = {
    "Ist_WrTmp": Translation._assign,
    "Ist_Put": Translation._put,
    "Ist_PutI": Translation._put_any,
    "Ist_Store": Translation._store,
    "Ist_StoreG": Translation._store_guarded,
    "Ist_LoadG": Translation._load_guarded,
    "Ist_CAS": Translation._compare_and_swap,
    "Ist_LLSC": Translation._load_linked,
    "Ist_Dirty": Translation._dirty,
    "Ist_Exit": Translation._exit,
}
