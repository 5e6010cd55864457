"""Divides code into instructions, and writes them in objdump's notation with the names of their targets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.decode.machines.base import ADDRESSES
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.show.capstone_library import decoder, split

NameOf = Callable[[int], str]
"""Returns the symbol and the offset for an address, as ``main+0x10``; empty: no symbol covers it."""

_PIECE = 8
"""Number of bytes in a line without capstone, if instructions of the machine have different sizes."""
_SOME_TARGET = "0x1000"
"""An address by which is found out whether an instruction is a jump to it."""


class Instruction(NamedTuple):
    """One instruction."""

    address: int
    raw: bytes
    text: str
    """In objdump's notation; empty: there is no disassembler."""


class Instructions(NamedTuple):
    """Instructions in columns: there are 300,000 in a C library, too many for an object each."""

    code: bytes
    """The code that they divide."""
    start: int
    """Its address."""
    addresses: list[int]
    sizes: list[int]
    """In bytes."""
    texts: list[str]

    def at(self, number: int) -> Instruction:
        """Return the instruction with a number."""
        address = self.addresses[number]
        offset = address - self.start
        return Instruction(address, self.code[offset : offset + self.sizes[number]], self.texts[number])


class Disassembler:
    """Disassembles the code of one machine by capstone; without capstone, there are only the bytes.

    :param name_of: names the targets of jumps and calls.
    """

    def __init__(self, arch: Arch, name_of: NameOf) -> None:
        self._machine = MACHINES[arch.name]
        self._unit = arch.instruction_unit
        self._name_of = name_of
        self._decoder = decoder(*self._machine.disassembler, self._machine.att_syntax)
        self._texts: dict[bytes, str] = {}
        """The texts of instructions that refer to no address, by capstone's texts."""
        self._jumps: dict[str, str] = {}
        """By capstone's mnemonic, objdump's if an operand that is only a number is the target of a jump; else empty."""

    @property
    def has_texts(self) -> bool:
        """Whether capstone is installed."""
        return self._decoder is not None

    def instructions(self, code: bytes, address: int, cuts: Sequence[int]) -> Instructions:
        """Return the instructions of a range of code.  Bytes that are no instruction become ``.byte`` lines.

        :param cuts: ascending addresses at which an instruction ends if there is no disassembler.
        """
        if self._decoder is None:
            return self._pieces(code, address, cuts)
        records = self._decoder.records(code, address)
        known, text = self._texts.get, self._text
        texts = [known(key) or text(key, at + size) for at, size, key in records]
        return Instructions(code, address, [one[0] for one in records], [one[1] for one in records], texts)

    def _text(self, key: bytes, end: int) -> str:
        """Return an instruction with the name of the address to which it refers, as far as known.

        :param key: capstone's texts.
        :param end: address after the instruction.
        """
        mnemonic, operands = split(key)
        if operands[:2] == "0x" and (jump := self._jump(mnemonic)):
            name = self._name_of(int(operands, 16))
            return f"{jump} {operands} <{name}>" if name else f"{jump} {operands}"
        text = self._machine.objdump_text(mnemonic, operands)
        targets = self._machine.references(text, end) if "0x" in text or "%rip" in text else ()
        if not targets:
            self._texts[key] = text
            return text
        names = {f"{target:#x}": self._name_of(target) for target in targets}
        if len(targets) == 1:
            ((address, name),) = names.items()
            if "%rip" in text:
                return f"{text}  # {address}" + (f" <{name}>" if name else "")
            if text.endswith(address):
                return f"{text} <{name}>" if name else text

        def named(found: re.Match[str]) -> str:
            name = names.get(found[0])
            return f"{found[0]} <{name}>" if name else found[0]

        return ADDRESSES.sub(named, text)

    def _jump(self, mnemonic: str) -> str:
        """Return objdump's mnemonic of a jump that has only its target as operand; empty: the instruction is no jump.

        The answer is the same for all targets, so the machine is asked once for a mnemonic.
        """
        found = self._jumps.get(mnemonic)
        if found is None:
            text = self._machine.objdump_text(mnemonic, _SOME_TARGET)
            name, _, operand = text.rpartition(" ")
            is_jump = operand == _SOME_TARGET and int(_SOME_TARGET, 16) in self._machine.references(text, 0)
            found = self._jumps[mnemonic] = name if is_jump else ""
        return found

    def _pieces(self, code: bytes, address: int, cuts: Sequence[int]) -> Instructions:
        """Return pieces of code: instructions if their first byte tells their size."""
        addresses, sizes = [], []
        for low, high in zip([address, *cuts], [*cuts, address + len(code)]):
            at = low
            while at < high:
                size = self._machine.sizes(code, at - address)[0] if self._unit > 1 else _PIECE
                addresses.append(at)
                sizes.append(min(size, high - at))
                at += size
        return Instructions(code, address, addresses, sizes, [""] * len(sizes))
