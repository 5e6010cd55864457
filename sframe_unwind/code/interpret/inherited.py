"""Finds the functions that use a callee-saved register of their caller as an argument, against the ABI."""

from __future__ import annotations

from collections.abc import Iterator, Set

from sframe_unwind.code.decode.instruction import CC_OPERATION, REGISTER, Expression, Instruction, Kind, targets
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.not_returning import is_not_returning
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.interpret.effects import MAX_FUNCTIONS
from sframe_unwind.code.interpret.sweep import Sweeps


class Inherited:
    """Finds the functions that read a register before they write it, other than to save it.

    So does a function whose callees do.  A callee outside the file, or one that can be replaced, is assumed to conform
    to the ABI.  So is a callee that leads to more than :data:`MAX_FUNCTIONS` functions, and one that loads the register
    again from the slot where it has saved it.

    :param not_returning: starts of functions that do not return; functions may be added later.
    """

    def __init__(
        self, image: CodeImage, machine: Machine, ranges: CodeRanges, sweeps: Sweeps, not_returning: Set[int]
    ) -> None:
        self._image = image
        self._machine = machine
        self._ranges = ranges
        self._sweeps = sweeps
        self._not_returning = not_returning
        self._known: dict[tuple[int, int], bool] = {}
        """By address and register, whether the code there uses the value in the register."""

    def reads(self, address: int, register: int) -> bool:
        """Return whether a callee, or what it calls, may use the value of its caller in a register."""
        known = self._known.get((address, register))
        if known is None:
            known = self._known[address, register] = self._finds_use(address, register)
        return known

    def _finds_use(self, address: int, register: int) -> bool:
        waiting, seen = [address], set[int]()
        functions = set[CodeRange]()
        while waiting:
            pc = waiting.pop()
            function = self._ranges.find(pc)
            if pc in seen or function is None or self._image.plt(pc) is not None or pc in self._image.interposable:
                continue
            functions.add(function)
            if len(functions) > MAX_FUNCTIONS:
                return False
            seen.add(pc)
            instruction = self._sweeps.sweep(function).instructions.get(pc)
            if instruction is None:
                continue
            if self._uses(instruction, register):
                return True
            if not any(one == register and not _reads(value, register) for one, value in instruction.puts):
                waiting += self._next(pc, instruction, function)
        return False

    def _next(self, pc: int, instruction: Instruction, function: CodeRange) -> Iterator[int]:
        """Yield the addresses at which execution may continue, also those of functions that are called."""
        name, after = self._image.external_call(pc, instruction.size), pc + instruction.size
        followed = [pc + target for target in targets(instruction) if target is not None] if name is None else []
        if instruction.kind is Kind.CALL:
            yield from followed  # a callee has the registers of its caller's caller that its caller has not written
            is_end = is_not_returning(name) if name is not None else not self._not_returning.isdisjoint(followed)
            if is_end or after >= function.end:
                return  # a call at the end does not return
        else:
            yield from followed
        if instruction.kind in (Kind.NEXT, Kind.CALL, Kind.SYSTEM):
            yield after

    def _uses(self, instruction: Instruction, register: int) -> bool:
        """Return whether an instruction reads a register, other than to save it, to compare it or to change it.

        A changed value still depends on that of the caller.  `setjmp` saves registers in a buffer of its caller.
        """
        found = [leaving.target for leaving in instruction.exits]
        if instruction.target is not None:
            found.append(instruction.target)
        whole = REGISTER, register, 0
        for number, value in instruction.puts:
            if number != register and number < CC_OPERATION and (value != whole or number in self._machine.general):
                found.append(value)
        for address, size, value in instruction.stores:
            found.append(address)
            if not isinstance(size, int):
                found.append(size)
            if value != whole:
                found.append(value)
        return any(_reads(expression, register) for expression in found)


def _reads(expression: Expression, register: int) -> bool:
    """Return whether an expression depends on a register."""
    if expression[:2] == (REGISTER, register):
        return True
    return any(_reads(part, register) for part in expression if isinstance(part, tuple))
