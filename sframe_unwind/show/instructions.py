"""Divides code into instructions, and writes them in objdump's notation with the names of their targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.code.decode.machines import MACHINES

NameOf = Callable[[int], str]
"""Returns the symbol and the offset for an address, as ``main+0x10``; empty: no symbol covers it."""

_PIECE = 8
"""Number of bytes in a line without capstone, if instructions of the machine have different sizes."""


_new = tuple.__new__
"""Makes named tuples without the function that names their fields: there are 300,000 of each kind in a C library."""


class Instruction(NamedTuple):
    """One instruction."""

    address: int
    raw: bytes
    text: str
    """In objdump's notation; empty: there is no disassembler."""


class Instructions:
    """Disassembles the code of one machine by capstone; without capstone, there are only the bytes.

    :param name_of: names the targets of jumps and calls.
    """

    def __init__(self, arch: Arch, name_of: NameOf) -> None:
        self._machine = MACHINES[arch.name]
        self._unit = arch.instruction_unit
        self._name_of = name_of
        self._decoder = _decoder(*self._machine.disassembler, self._machine.att_syntax)
        self._texts: dict[tuple[str, str], str] = {}

    @property
    def has_texts(self) -> bool:
        """Whether capstone is installed."""
        return self._decoder is not None

    def of(self, code: bytes, address: int) -> Iterator[Instruction]:
        """Yield the instructions of a function.  Bytes that are no instruction become ``.byte`` lines."""
        if self._decoder is None:
            yield from self._pieces(code, address)
            return
        texts, written, reference = self._texts, self._machine.objdump_text, self._machine.reference
        for at, size, mnemonic, operands in self._decoder.disasm_lite(code, address):
            end = at + size
            text = texts.get((mnemonic, operands))
            if text is None:
                text = written(mnemonic, operands)
                if "0x" not in text or reference(text, end) is None:
                    texts[mnemonic, operands] = text
                else:  # the name depends on the place
                    text = self._named(text, end)
            yield _new(Instruction, (at, code[at - address : end - address], text))

    def _named(self, text: str, end: int) -> str:
        """Return an instruction with the name of the address to which it refers, as far as known."""
        target = self._machine.reference(text, end)
        assert target is not None
        name = self._name_of(target)
        if f"{target:#x}" in text:
            return f"{text} <{name}>" if name else text
        return f"{text}  # {target:#x}" + (f" <{name}>" if name else "")

    def _pieces(self, code: bytes, address: int) -> Iterator[Instruction]:
        sizes = self._machine.sizes
        at = 0
        while at < len(code):
            size = sizes(code, at)[0] if self._unit > 1 else _PIECE
            yield Instruction(address + at, code[at : at + size], "")
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
