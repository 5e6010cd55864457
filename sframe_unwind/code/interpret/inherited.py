"""Finds the functions that use a callee-saved register of their caller as an argument, against the ABI."""

from __future__ import annotations

from collections.abc import Iterator, Set

from sframe_unwind.code.decode.instruction import (
    CC_OPERATION,
    LOAD,
    REGISTER,
    Expression,
    Instruction,
    Kind,
    targets,
)
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.not_returning import is_not_returning
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.interpret.effects import MAX_FUNCTIONS
from sframe_unwind.code.interpret.sweep import Sweeps
from sframe_unwind.named_tuple import NamedTuple

_WORD = 8
_MOST_PLACES = 4096
"""Maximum number of places in the code that are examined for one register of one callee."""


class _At(NamedTuple):
    """A place in the code, and where the caller's value of a register is there."""

    pc: int
    is_there: bool = True
    """The register itself has the value."""
    sp: int | None = 0
    """Distance of the stack pointer from that at the entry in bytes; ``None``: it is not known."""
    fp: int | None = None
    """The same of the frame pointer."""
    slot: int | None = None
    """The same of the slot where the value is saved; ``None``: none is known."""


class Inherited:
    """Finds the functions that use the value of a register at their entry, other than to save and to restore it.

    So does a function whose callees do.  A callee outside the file, or one that can be replaced, is assumed to conform
    to the ABI.  So is a callee that leads to more than :data:`MAX_FUNCTIONS` functions, and one that keeps the value in
    memory outside of its frame.

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
        waiting, seen = [_At(address)], set[_At]()
        functions = set[CodeRange]()
        while waiting:
            at = waiting.pop()
            function = self._ranges.find(at.pc)
            if at in seen or function is None or self._image.plt(at.pc) or at.pc in self._image.interposable:
                continue
            functions.add(function)
            seen.add(at)
            if len(functions) > MAX_FUNCTIONS or len(seen) > _MOST_PLACES:
                return False
            instruction = self._sweeps.sweep(function).instructions.get(at.pc)
            if instruction is None:
                continue
            if (at.is_there and self._uses(instruction, register)) or self._loads(instruction, at, register):
                return True
            after = self._after(instruction, at, register)
            if after.is_there or after.slot is not None:
                waiting += self._next(at, after, instruction, function)
        return False

    def _after(self, instruction: Instruction, at: _At, register: int) -> _At:
        """Return where the value is after an instruction, apart from the next address."""
        is_there, slot = at.is_there, at.slot
        sp, fp = self._machine.arch.sp, self._machine.arch.fp
        for address, size, value in instruction.stores:
            place = self._place(address, at)
            if at.is_there and value == (REGISTER, register, 0):
                slot = place if slot is None else slot
            elif slot is not None and place is not None and isinstance(size, int):
                slot = None if place - _WORD < slot < place + size else slot
        found = {sp: at.sp, fp: at.fp}
        for number, value in instruction.puts:
            if number == register and not _reads(value, register):
                is_there = at.slot is not None and value[0] == LOAD and self._place(value[1], at) == at.slot
            if number in found:
                found[number] = self._place(value, at)
        if instruction.kind is Kind.CALL:
            found[sp] = at.sp  # the callee removes its return address
        if slot is not None and (top := found[sp]) is not None and slot < top:
            slot = None
        return _At(at.pc, is_there, found[sp], found[fp], slot)

    def _place(self, address: Expression, at: _At) -> int | None:
        """Return the distance of an address from the stack pointer at the entry; ``None``: it is not known."""
        if address[0] != REGISTER or address[1] not in (self._machine.arch.sp, self._machine.arch.fp):
            return None
        base = at.sp if address[1] == self._machine.arch.sp else at.fp
        return None if base is None else base + int(address[2])

    def _loads(self, instruction: Instruction, at: _At, register: int) -> bool:
        """Return whether an instruction loads the value from where it was saved, other than to restore it."""
        if at.slot is None:
            return False
        return any(
            value[0] == LOAD and number != register and self._place(value[1], at) == at.slot
            for number, value in instruction.puts
        )

    def _next(self, at: _At, after: _At, instruction: Instruction, function: CodeRange) -> Iterator[_At]:
        """Yield where execution may continue, also in functions that are called."""
        pc = at.pc
        name, following = self._image.external_call(pc, instruction.size), pc + instruction.size
        followed = [pc + target for target in targets(instruction) if target is not None] if name is None else []
        if instruction.kind is Kind.CALL:
            # A callee has the registers of its caller's caller that its caller has not written.
            yield from map(_At, followed if at.is_there else ())
            is_end = is_not_returning(name) if name is not None else not self._not_returning.isdisjoint(followed)
            if is_end or following >= function.end:
                return  # a call at the end does not return
        else:
            yield from (after._replace(pc=target) for target in followed)
        if instruction.kind in (Kind.NEXT, Kind.CALL, Kind.SYSTEM):
            yield after._replace(pc=following)

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
