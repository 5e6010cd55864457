"""Disassembles instructions by capstone: texts in objdump's notation, and operands of those that VEX does not know."""

from __future__ import annotations

from typing import Any

from sframe_unwind.code.decode.instruction import ADD, CONSTANT, HIGH, REGISTER, SHIFT_LEFT, Expression
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.decode.machines.base import Disassembled

_REGISTER_OPERAND, _MEMORY_OPERAND = 1, 3
"""Capstone's numbers, the same for all its machines."""


class Disassembler:
    """Disassembles the instructions of one machine."""

    def __init__(self, machine: Machine) -> None:
        import capstone

        architecture, mode = machine.disassembler
        self._machine = machine
        self._decoder: Any = capstone.Cs(getattr(capstone, architecture), getattr(capstone, mode))
        self._decoder.detail = True
        self._jumping = (capstone.CS_GRP_JUMP, capstone.CS_GRP_CALL, capstone.CS_GRP_RET, capstone.CS_GRP_INT)
        self._known: dict[int, tuple[int, ...]] = {}
        self._text_decoder: Any = capstone.Cs(getattr(capstone, architecture), getattr(capstone, mode))
        if machine.att_syntax:
            self._text_decoder.syntax = capstone.CS_OPT_SYNTAX_ATT

    def decode(self, raw: bytes) -> Disassembled | None:
        """Return the instruction at the start of some bytes; ``None``: capstone does not know it either."""
        found = next(self._decoder.disasm(raw, 0, 1), None)
        if found is None:
            return self._like(raw)
        registers, memory = [], []
        for operand in found.operands:
            if operand.type == _REGISTER_OPERAND:
                registers.append(self._numbers(operand.reg))
            elif operand.type == _MEMORY_OPERAND:
                memory.append(self._place(operand))
        return Disassembled(
            raw=raw[: found.size],
            mnemonic=str(found.mnemonic),
            operands=str(found.op_str),
            registers=tuple(registers),
            may_jump=any(found.group(group) for group in self._jumping),
            memory=tuple(memory),
            written=self._written(found),
            accesses=tuple(
                getattr(operand, "access", 0) or 0 for operand in found.operands if operand.type == _MEMORY_OPERAND
            ),
        )

    def _like(self, raw: bytes) -> Disassembled | None:
        """Return an instruction that capstone does not know, with the operands of another one that it knows."""
        like = None if self._machine.like is None else self._machine.like(raw)
        known = None if like is None else self.decode(like.raw)
        return None if like is None or known is None else known._replace(raw=raw[: known.size], mnemonic=like.mnemonic)

    def _written(self, found: Any) -> frozenset[int]:
        """Return the followed registers that an instruction writes; none for s390x, where capstone does not know."""
        if not self._machine.has_access:
            return frozenset()
        _, written = found.regs_access()
        return frozenset(number for register in written for number in self._numbers(register)[:1])

    def _place(self, operand: Any) -> tuple[Expression | None, int, tuple[int, ...]]:
        place = operand.mem
        numbers = (*self._numbers(place.base), *self._numbers(place.index))
        address: Expression | None = None
        if len(self._numbers(place.base)) == 1:
            address = (REGISTER, *self._numbers(place.base), place.disp)
        elif not place.base:
            address = (CONSTANT, place.disp)
        if place.index and (getattr(operand, "ext", 0) or getattr(getattr(operand, "shift", None), "value", 0)):
            address = None  # AArch64: the index is extended or shifted
        if place.index and address is not None:
            index, scale = self._numbers(place.index), getattr(place, "scale", 1)
            if len(index) == 1:
                address = (ADD, address, (SHIFT_LEFT, (REGISTER, *index, 0), scale.bit_length() - 1))
            else:
                address = None
        return address, getattr(operand, "size", 0), numbers

    def _numbers(self, register: int) -> tuple[int, ...]:
        """Return the numbers of a register: two for the halves of a vector register."""
        found = self._known.get(register)
        if found is None:
            found = self._known[register] = self._named(register)
        return found

    def _named(self, register: int) -> tuple[int, ...]:
        number = self._machine.capstone_registers.get(str(self._decoder.reg_name(register))) if register else None
        if number is None:
            return ()
        return (number,) if number in self._machine.general else (number, number + HIGH)

    def text(self, raw: bytes, address: int) -> str:
        """Return the instruction at the start of some bytes, as ``push %rbx``."""
        decoder = self._text_decoder
        found = next(decoder.disasm(raw, address, 1), None)
        if found is None:
            return f".byte {raw.hex(' ')}"
        return self._machine.objdump_text(str(found.mnemonic), str(found.op_str))
