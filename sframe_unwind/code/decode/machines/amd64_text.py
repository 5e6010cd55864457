"""The notation of AMD64's instructions, as objdump writes them."""

from __future__ import annotations

import re

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.code.decode.machines.base import small_address

_WITH_REGISTER = ("mov", "lea", "add", "sub", "and", "or", "xor", "test", "cmp")
_SIZED = {name: name[:-1] for name in ("pushq", "popq", "callq", "retq", "jmpq", "leaveq")}
_OF_64_BITS = {f"{name}q": name for name in _WITH_REGISTER}
_OF_FEWER = {f"{name}{size}": name for name in _WITH_REGISTER for size in "lwb"}


def objdump_text(mnemonic: str, operands: str) -> str:
    """Return an instruction of capstone in objdump's notation."""
    # objdump omits the size of the operand if a register implies it.
    if mnemonic in _SIZED:
        mnemonic = _SIZED[mnemonic]
    elif mnemonic in _OF_64_BITS:
        if "%r" in operands:
            mnemonic = _OF_64_BITS[mnemonic]
    elif mnemonic in _OF_FEWER and "%" in operands.rpartition(", ")[2][:1]:
        mnemonic = _OF_FEWER[mnemonic]
    # An operand without $, % and * is the target of a jump.
    return f"{mnemonic} {small_address(operands).replace(', ', ',')}".rstrip()


_TARGET = re.compile(r"(?:^|\s)(?:j\w+|callq?|loop\w*|xbegin) 0x([0-9a-f]+)$")
_RELATIVE = re.compile(r"(-?)(?:0x)?([0-9a-f]*)\(%rip\)")
"""Capstone leaves out a displacement of 0, and writes those below 10 without ``0x``."""


def references(text: str, end: int) -> tuple[int, ...]:
    """Return the address to which an instruction refers; none if it refers to none.

    :param end: address after the instruction.
    """
    if "(%rip)" in text:
        relative = _RELATIVE.search(text)
        return () if relative is None else (end + int(f"{relative[1]}{relative[2] or 0}", 16) & ADDRESS_MASK,)
    if "%" in text or "$" in text or "(" in text:  # most instructions
        return ()
    target = _TARGET.search(text)
    return () if target is None else (int(target[1], 16),)
