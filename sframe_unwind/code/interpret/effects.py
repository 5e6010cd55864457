"""Finds the registers that the functions of a file may change for their callers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Callable

from sframe_unwind.code.decode.instruction import Instruction, Kind, targets
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.interpret.pointed import Pointed
from sframe_unwind.code.interpret.sweep import Sweeps

Instructions = Mapping[int, Instruction]
"""By address."""
Restored = Callable[[CodeRange], frozenset[int]]

MAX_FUNCTIONS, _MAX_BYTES = 32, 65_536
"""Limits for the code to which one callee leads.  A callee with more is assumed to change all registers that the ABI
permits, and no others."""


class Effects:
    """Finds the registers that a callee may change, from all instructions to which its calls and jumps can lead.

    The rules of the ABI are assumed for a callee that leads out of the file, can be replaced by a function of another
    file, or jumps to the value of a register.  If the callee computes or loads pointers to functions, that value may
    be one of these.

    :param restored: returns the callee-saved registers that a function restores on all paths on which it is left.
    """

    def __init__(
        self, image: CodeImage, machine: Machine, ranges: CodeRanges, sweeps: Sweeps, restored: Restored
    ) -> None:
        self._image = image
        self._machine = machine
        self._ranges = ranges
        self._sweeps = sweeps
        self._restored = restored
        self._by_abi = frozenset(machine.followed) - machine.preserved
        self._pointed = Pointed(image, ranges)
        self._known: dict[int, frozenset[int]] = {}
        self._restored_by: dict[CodeRange, frozenset[int]] = {}
        self.parts: Collection[int] = ()
        """Starts of functions that are entered with the frame of another function, according to their own rows."""

    def forget(self) -> None:
        """Find the effects anew, because facts on which they depend have changed."""
        self._known.clear()
        self._restored_by.clear()

    def changed(self, address: int) -> frozenset[int]:
        """Return the registers that a call of an address may change."""
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._changed(address)
        return found

    def _changed(self, address: int) -> frozenset[int]:
        nothing: frozenset[int] = frozenset()
        waiting, seen, size = [(address, nothing)], {(address, nothing)}, 0
        changed: set[int] = set()
        while waiting:
            start, kept = waiting.pop()
            function = self._ranges.find(start)
            if function is None or self._image.plt(start) is not None or start in self._image.interposable:
                changed |= self._by_abi
                continue
            size += function.end - function.start
            if len(seen) > MAX_FUNCTIONS or size > _MAX_BYTES:
                return frozenset(changed | self._by_abi)
            instructions = self._reached(function, start)
            written = self._written(instructions)
            saved = self._restored_in(function) if written & self._machine.preserved else nothing
            changed |= written - (saved | kept)
            for target, is_part in self._targets(function, instructions):
                if target is None:
                    changed |= self._by_abi
                    continue
                # A function restores what it saved after its parts.
                found = target, saved | kept if is_part else nothing
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
        return frozenset(changed)

    def _restored_in(self, function: CodeRange) -> frozenset[int]:
        found = self._restored_by.get(function)
        if found is None:
            found = self._restored_by[function] = self._restored(function)
        return found

    def _reached(self, function: CodeRange, start: int) -> Instructions:
        """Return the instructions that a function executes from an entry on; all of them if that is not known."""
        every = self._sweeps.sweep(function).instructions
        waiting, found = [start], dict[int, Instruction]()
        while waiting:
            pc = waiting.pop()
            if pc in found or not function.start <= pc < function.end:
                continue
            instruction = every.get(pc)
            if instruction is None or (instruction.kind is Kind.JUMP and None in targets(instruction)):
                return every
            found[pc] = instruction
            waiting += [pc + target for target in targets(instruction) if target is not None]
            if instruction.kind not in (Kind.JUMP, Kind.RETURN):
                waiting.append(pc + instruction.size)
        return {pc: instruction for pc, instruction in every.items() if pc in found}

    def _written(self, instructions: Instructions) -> set[int]:
        """Return the registers that a function writes."""
        written = set()
        for instruction in instructions.values():
            written |= {number for number, _ in instruction.puts}
            if instruction.kind is Kind.SYSTEM:
                written |= set(self._machine.system_call_results)
            elif instruction.kind is Kind.STOP:
                written |= self._by_abi
        return written

    def _targets(self, function: CodeRange, instructions: Instructions) -> Iterator[tuple[int | None, bool]]:
        """Yield the addresses to which a function may lead, and whether each is a part of it by its rows.

        ``None`` stands for an address that is not known, or not in the file.
        """
        if any(None in targets(instruction) for instruction in instructions.values()):
            yield from ((start, False) for start in self._pointed.functions(function, instructions, self.parts))
        for pc, instruction in instructions.items():
            for target in targets(instruction):
                if target is None or self._image.external_call(pc, instruction.size) is not None:
                    yield None, False
                elif not function.start <= pc + target < function.end:
                    yield pc + target, instruction.kind is not Kind.CALL and pc + target in self.parts
