"""The notation of AMD64's instructions, as objdump writes them."""

from __future__ import annotations

import re

_SIZED = ("pushq", "popq", "callq", "retq", "jmpq", "leaveq")
_SIZED_WITH_REGISTER = ("mov", "lea", "add", "sub", "and", "or", "xor", "test", "cmp")


def objdump_text(mnemonic: str, operands: str) -> str:
    """Return an instruction of capstone in objdump's notation."""
    # objdump omits the size of the operand if a register implies it.
    if mnemonic in _SIZED or (mnemonic[-1:] == "q" and mnemonic[:-1] in _SIZED_WITH_REGISTER and "%r" in operands):
        mnemonic = mnemonic[:-1]
    if mnemonic[-1:] in "lwb" and mnemonic[:-1] in _SIZED_WITH_REGISTER and "%" in operands.rpartition(", ")[2][:1]:
        mnemonic = mnemonic[:-1]
    return f"{mnemonic} {operands.replace(', ', ',')}".rstrip()


_TARGET = re.compile(r"(?:^|\s)(?:j\w+|callq?|loop\w*|xbegin) 0x([0-9a-f]+)$")
_RELATIVE = re.compile(r"(-?)0x([0-9a-f]+)\(%rip\)")


def reference(text: str, end: int) -> int | None:
    """Return the address to which an instruction refers; ``None``: it refers to none.

    :param end: address after the instruction.
    """
    if "(%rip)" in text:
        relative = _RELATIVE.search(text)
        return None if relative is None else end + int(relative[1] + relative[2], 16)
    if "%" in text or "$" in text or "(" in text:  # most instructions
        return None
    target = _TARGET.search(text)
    return None if target is None else int(target[1], 16)
