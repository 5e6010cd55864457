"""Decodes the instructions of a function one after the other, from its start to its end."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator

from sframe_unwind.code.decode.instruction import PC_RELATIVE, Instruction, Kind, jumps
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines.base import STOP
from sframe_unwind.code.image.code_image import CodeImage, Contents
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.image.static_branches import either_way

_MAX_KEPT = 32
"""Maximum number of sweeps to keep: a function, and the functions that are followed from it."""


class Sweep:
    """The instructions of one function."""

    def __init__(self, function: CodeRange, image: CodeImage, lifter: Lifter) -> None:
        self.function = function
        self._lifter = lifter
        self._image = image
        section = image.section(function.start)
        self._contents: Contents = section.contents if section is not None and section.executable else b""
        self._offset = function.start - section.start if section is not None else 0
        """Offset of the function in its section."""
        size = max(min(function.end - function.start, len(self._contents) - self._offset), 0)
        # The lifter gets some bytes after the function's end, so that it does not cut the last instruction off.
        self._code = self._contents[self._offset : self._offset + size + lifter.machine.max_size]
        self._end = size
        self.instructions: dict[int, Instruction] = {}
        """The instructions by address."""
        self.starts: set[int] = set()
        """Addresses that direct jumps lead to."""
        self.executed: set[int] = set()
        """Addresses of instructions that other instructions execute."""
        self.executing: list[int] = []
        """Addresses of the instructions that execute another one."""
        self.branches: list[tuple[int, int]] = []
        """Addresses of the static branches, and where they lead."""
        self._decode()

    def _executed(self, found: Instruction, at: int) -> Instruction:
        """Return an instruction that executes another one, with that one's effects if it is in the same section."""
        execute, offset = self._lifter.machine.execute, found.target
        if execute is None or offset is None or found.kind is not Kind.STOP:
            return found
        place = self._offset + at + offset[1]
        target = self._contents[place : place + 6] if place >= 0 else b""
        known = execute(self._code[at : at + found.size], target)
        return found if known is None else known._replace(target=offset)

    def _decode(self) -> None:
        pc, decode = self.function.start, self._lifter.instruction
        at = 0
        in_block_loop = self._lifter.machine.in_block_loop
        code, end, instructions, branches = self._code, self._end, self.instructions, self._image.static_branches
        skip = self._lifter.machine.sizes(code, at)[0] if at < end else 1
        while at < end:
            found = decode(code, at)
            if not found.size or at + found.size > end:
                at, pc = at + min(skip, 2), pc + min(skip, 2)
                continue
            if found.kind is Kind.NEXT:
                found = found if in_block_loop is None else in_block_loop(code, at) or found
            elif found.target is not None and found.kind is Kind.STOP:
                found = self._executed(found, at)
            if branches and pc in branches:
                self.branches.append((pc, branches[pc]))
                found = either_way(found, *self.branches[-1])
            instructions[pc] = found
            for leaving in found.exits:
                if leaving.target[0] == PC_RELATIVE:
                    self.starts.add(pc + leaving.target[1])
            if found.target is not None and found.target[0] == PC_RELATIVE:
                if found.kind is Kind.JUMP:
                    self.starts.add(pc + found.target[1])
                elif found.kind in (Kind.NEXT, Kind.STOP):
                    self.executed.add(pc + found.target[1])
                    self.executing.append(pc)
            at += found.size
            pc += found.size

    def instruction(self, pc: int) -> Instruction:
        """Return the instruction at an address of the function, also within another instruction."""
        known = self.instructions.get(pc)
        if known is not None:
            return known
        at = pc - self.function.start
        if not self.function.start <= pc < self.function.end or not 0 <= at < self._end:
            return STOP
        found = self._executed(self._lifter.instruction(self._code, at), at)
        in_block_loop = self._lifter.machine.in_block_loop
        if in_block_loop is not None and found.kind is Kind.NEXT:
            found = in_block_loop(self._code, at) or found
        target = self._image.static_branches.get(pc)
        found = found if target is None else either_way(found, pc, target)
        return found if at + found.size <= self._end else STOP

    def addresses(self, start: int, end: int) -> list[int]:
        """Return the addresses of the instructions that are executed one after the other from a start to an end."""
        known, found = self.instructions, []
        while start < end:
            found.append(start)
            start += (known.get(start) or self.instruction(start)).size
        return found

    def bytes_at(self, pc: int, size: int) -> bytes:
        """Return bytes of the code."""
        at = pc - self.function.start
        return self._code[at : at + size]

    def after_padding(self, address: int) -> int:
        """Return the first address without padding, from an address on."""
        is_padding = self._lifter.machine.is_padding
        while (size := self.instruction(address).size) and is_padding(self.bytes_at(address, size)):
            address += size
        return address

    def first_without(self, known: Collection[int]) -> int:
        """Return the first address in the function that is neither in a collection nor within padding or those before.

        Without such an address, that is the end of the function.
        """
        pc = self.function.start
        while pc < self.function.end:
            if pc not in known and (after := self.after_padding(pc)) == pc:
                break
            pc = pc + self.instruction(pc).size if pc in known else after
        return pc

    def leads_to(self, pc: int) -> Iterator[int]:
        """Yield the targets outside the function that an instruction reaches by direct jumps alone."""
        waiting, seen = [pc], set()
        while waiting:
            pc = waiting.pop()
            found = self.instructions.get(pc)
            if found is None:
                if not self.function.start <= pc < self.function.end:
                    yield pc
                continue
            if pc in seen:
                continue
            seen.add(pc)
            waiting += [pc + distance for distance in jumps(found)]
            if found.kind is Kind.NEXT:
                waiting.append(pc + found.size)

    def calls(self) -> Iterator[tuple[int, int]]:
        """Yield the addresses and the targets of direct calls."""
        for pc, found in self.instructions.items():
            if found.kind is Kind.CALL and found.target is not None and found.target[0] == PC_RELATIVE:
                yield pc, pc + found.target[1]

    def external_names(self) -> tuple[tuple[int, str], ...]:
        """Return the names of symbols in other files to which the function refers, by offset from its start."""
        if not self._image.external:
            return ()
        start, end = self.function
        fields = self._image.external
        return tuple((field - start, fields[field]) for field in range(start, end) if field in fields)

    def after_jumps(self) -> Iterator[int]:
        """Yield the addresses after instructions that do not continue at the next one."""
        fresh = False
        for pc, instruction in self.instructions.items():
            if fresh and not self._lifter.machine.is_padding(self.bytes_at(pc, instruction.size)):
                yield pc
                fresh = False
            if instruction.kind in (Kind.JUMP, Kind.RETURN, Kind.TRAP):
                fresh = True


class Sweeps:
    """The functions that were decoded most recently."""

    def __init__(self, image: CodeImage, lifter: Lifter) -> None:
        self._image = image
        self._lifter = lifter
        self._known: OrderedDict[CodeRange, Sweep] = OrderedDict()

    def sweep(self, function: CodeRange) -> Sweep:
        """Return the instructions of a function."""
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = Sweep(function, self._image, self._lifter)
            if len(self._known) > _MAX_KEPT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(function)
        return found
