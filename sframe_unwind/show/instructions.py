"""Divides code into instructions, and writes them in objdump's notation with the names of their targets."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.code.decode.machines import MACHINES

NameOf = Callable[[int], str]
"""Returns the symbol and the offset for an address, as ``main+0x10``; empty: no symbol covers it."""

_PIECE = 8
"""Number of bytes in a line without capstone, if instructions of the machine have different sizes."""


class Instruction(NamedTuple):
    """One instruction."""

    address: int
    raw: bytes
    text: str
    """In objdump's notation; empty: there is no disassembler."""


class Instructions(NamedTuple):
    """Instructions in columns: there are 300,000 in a C library, too many for an object each."""

    addresses: list[int]
    raws: list[bytes]
    texts: list[str]

    def at(self, number: int) -> Instruction:
        """Return the instruction with a number."""
        return Instruction(self.addresses[number], self.raws[number], self.texts[number])


class Disassembler:
    """Disassembles the code of one machine by capstone; without capstone, there are only the bytes.

    :param name_of: names the targets of jumps and calls.
    """

    def __init__(self, arch: Arch, name_of: NameOf) -> None:
        self._machine = MACHINES[arch.name]
        self._unit = arch.instruction_unit
        self._name_of = name_of
        self._decoder = _decoder(*self._machine.disassembler, self._machine.att_syntax)
        self._texts: dict[tuple[str, str], str] = {}
        """The texts of instructions that refer to no address, by capstone's texts."""

    @property
    def has_texts(self) -> bool:
        """Whether capstone is installed."""
        return self._decoder is not None

    def append(self, found: Instructions, code: bytes, address: int) -> None:
        """Append the instructions of a range of code.  Bytes that are no instruction become ``.byte`` lines."""
        if self._decoder is None:
            self._append_pieces(found, code, address)
            return
        known = self._texts
        add_address, add_raw, add_text = found.addresses.append, found.raws.append, found.texts.append
        for at, size, mnemonic, operands in self._decoder.disasm_lite(code, address):
            offset = at - address
            add_address(at)
            add_raw(code[offset : offset + size])
            add_text(known.get((mnemonic, operands)) or self._text(mnemonic, operands, at + size))

    def _text(self, mnemonic: str, operands: str, end: int) -> str:
        """Return an instruction with the name of the address to which it refers, as far as known."""
        text = self._machine.objdump_text(mnemonic, operands)
        target = self._machine.reference(text, end) if "0x" in text or "%rip" in text else None
        if target is None:
            self._texts[mnemonic, operands] = text
            return text
        name = self._name_of(target)
        if f"{target:#x}" in text:
            return f"{text} <{name}>" if name else text
        return f"{text}  # {target:#x}" + (f" <{name}>" if name else "")

    def _append_pieces(self, found: Instructions, code: bytes, address: int) -> None:
        sizes, at = self._machine.sizes, 0
        while at < len(code):
            size = sizes(code, at)[0] if self._unit > 1 else _PIECE
            found.addresses.append(address + at)
            found.raws.append(code[at : at + size])
            found.texts.append("")
            at += size


def _decoder(architecture: str, mode: str, att_syntax: bool) -> Any:
    """Return capstone's decoder; ``None``: capstone is not installed."""
    try:
        import capstone
    except ImportError:
        return None
    decoder = capstone.Cs(getattr(capstone, architecture), getattr(capstone, mode))
    decoder.skipdata = True
    if att_syntax:
        decoder.syntax = capstone.CS_OPT_SYNTAX_ATT
    return decoder
