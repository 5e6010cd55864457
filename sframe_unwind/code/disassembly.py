"""Instructions as text, in objdump's notation, and the size of those that VEX does not know, by capstone."""

from __future__ import annotations

from typing import Any

from sframe_unwind.code.machines import Machine


class Disassembler:
    """Disassembles the instructions of one machine."""

    def __init__(self, machine: Machine) -> None:
        import capstone

        architecture, mode = machine.disassembler
        self._machine = machine
        self._capstone = capstone
        self._decoder: Any = capstone.Cs(getattr(capstone, architecture), getattr(capstone, mode))
        self._decoder.detail = True
        self._text_decoder: Any = capstone.Cs(getattr(capstone, architecture), getattr(capstone, mode))
        if machine.att_syntax:
            self._text_decoder.syntax = capstone.CS_OPT_SYNTAX_ATT
        self._plain = (capstone.CS_GRP_JUMP, capstone.CS_GRP_CALL, capstone.CS_GRP_RET, capstone.CS_GRP_INT)

    def size_and_writes(self, raw: bytes) -> tuple[int, list[int]] | None:
        """Return the size of an instruction that goes on to the next, and the general registers that it writes.

        ``None``: it is not known here either.
        """
        found = next(self._decoder.disasm(raw, 0, 1), None)
        if found is None or any(found.group(group) for group in self._plain):
            return None
        try:
            _, written = found.regs_access()
        except self._capstone.CsError:
            # For s390x it does not say: any register that is an operand may be written, and the other of a pair.
            numbers = [
                number for operand in found.operands if operand.type == 1 for number in self._numbers(operand.reg)
            ]
            return found.size, numbers
        names = {str(found.reg_name(number)) for number in written}
        known = self._machine.capstone_registers
        return found.size, sorted({known[name] for name in names if name in known})

    def _numbers(self, register: int) -> list[int]:
        number = self._machine.capstone_registers.get(str(self._decoder.reg_name(register)))
        return [] if number is None else [number, number ^ 1]

    def text(self, raw: bytes, address: int) -> str:
        """Return the instruction at the start of some bytes, as ``push %rbx``."""
        decoder = self._text_decoder
        found = next(decoder.disasm(raw, address, 1), None)
        if found is None:
            return f".byte {raw.hex(' ')}"
        return self._machine.objdump_text(str(found.mnemonic), str(found.op_str))
