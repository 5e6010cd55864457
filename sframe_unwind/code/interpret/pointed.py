"""Finds the functions of a file to which a function may lead by a pointer that it computes or loads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sframe_unwind.code.decode.instruction import (
    ADD,
    CONSTANT,
    LOAD,
    PAGE_RELATIVE,
    PC_RELATIVE,
    REGISTER,
    Expression,
    Instruction,
)
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges

_PAGE_MASK = ~0xFFF
_WORD = 8
_MOST_ENTRIES = 16
"""Maximum number of words of a table that are read."""


class Pointed:
    """The functions whose addresses code computes, and those to which the words point that code may load."""

    def __init__(self, image: CodeImage, ranges: CodeRanges) -> None:
        self._image = image
        self._ranges = ranges

    def functions(
        self, function: CodeRange, instructions: Mapping[int, Instruction], parts: Collection[int]
    ) -> frozenset[int]:
        """Return the start addresses of the other functions to which a function may lead by a pointer.

        :param instructions: those of the function by address, in order; jumps between them are not followed.
        :param parts: starts of functions that are parts of others: they are not called.
        """
        known: dict[int, int] = {}
        found: set[int] = set()
        for pc, instruction in instructions.items():
            addresses: list[int | None] = []
            for number, value in instruction.puts:
                address = self._address(value, pc, known)
                addresses.append(address)
                known.pop(number, None)
                if address is not None and value[0] != LOAD:
                    known[number] = address
            if instruction.target is not None:
                addresses.append(self._address(instruction.target, pc, known))
            for address in addresses:
                if address is not None:
                    found.update(self._at(address))
        return frozenset(start for start in found if start != function.start and start not in parts)

    def _at_word(self, address: int) -> int | None:
        """Return the start of the function to which a word points when the program starts; ``None``: to none."""
        if self._image.is_code(address):
            return None
        pointer = self._image.read(address, _WORD)
        return pointer if pointer is not None and self._is_function(pointer) else None

    def _is_function(self, address: int) -> bool:
        function = self._ranges.find(address)
        return function is not None and function.start == address

    def _at(self, address: int) -> Iterator[int]:
        """Yield the function at an address, or those of the table there."""
        if self._is_function(address):
            yield address
            return
        for number in range(_MOST_ENTRIES):
            pointer = self._at_word(address + _WORD * number)
            if pointer is None:
                return
            yield pointer

    def _address(self, expression: Expression, pc: int, known: Mapping[int, int]) -> int | None:
        """Return a constant address, or the one to which an index is added, or from which a word is loaded."""
        kind = expression[0]
        if kind == PC_RELATIVE:
            return pc + int(expression[1])
        if kind == PAGE_RELATIVE:
            return (pc & _PAGE_MASK) + int(expression[1])
        if kind == REGISTER and expression[1] in known:
            return known[expression[1]] + int(expression[2])
        if kind == LOAD and expression[2] == _WORD:
            return self._address(expression[1], pc, known)
        if kind == ADD:
            left, right = (self._address(operand, pc, known) for operand in expression[1:])
            constant = expression[2][1] if expression[2][0] == CONSTANT else 0
            return right if left is None else left + constant
        return None
