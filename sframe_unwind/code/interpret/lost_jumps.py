"""Finds where the jumps of a function may lead whose targets are not known."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.code.decode.instruction import PC_RELATIVE, Expression, Instruction, Kind, jumps
from sframe_unwind.code.interpret.blocks import Blocks
from sframe_unwind.code.interpret.expressions import is_count
from sframe_unwind.code.interpret.program import Program
from sframe_unwind.code.interpret.run import address_of
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.sweep import Sweep
from sframe_unwind.code.interpret.values import NUMBER

_MASK = (1 << 64) - 1


class LostJumps:
    """The jumps with unknown targets.

    Such a jump may lead to each address in the function that the function computes, because the address then serves as
    the target of some jump.
    """

    def __init__(self, program: Program, sweep: Sweep) -> None:
        self._program = program
        self._frame = program.frame
        self._evaluator = program.evaluator
        self._general = frozenset(program.machine.general)
        self._sweep = sweep
        self.unresolved: list[State] = []
        """The states at the jumps within the function."""
        self._leaving: list[State] = []
        """The states at jumps that may also leave the function."""

    def leave(self, state: State) -> None:
        """Record a jump or a return to an unknown address that may lead into the function again."""
        self._leaving.append(state.copy())

    def labels(self, blocks: Blocks) -> dict[int, State]:
        """Return the addresses to which the jumps may lead, with the state there."""
        if not self._leaving:
            return {}
        state = self.joined(self._leaving)
        return {address: state for block in list(blocks.states) for address in self._computed(block, blocks)}

    def joined(self, states: list[State]) -> State:
        """Return a state that covers some states."""
        joined = states[0].copy()
        for other in states[1:]:
            self._frame.join(joined, other, 0)
        return joined

    def _computed(self, block: int, blocks: Blocks) -> Iterator[int]:
        """Yield the addresses of instructions of the function that a block computes."""
        pc, state, instructions = address_of(block), blocks.states[block].copy(), self._sweep.instructions
        while (instruction := instructions.get(pc)) is not None and pc in blocks.visited:
            if instruction.kind is Kind.CALL:
                return  # the address after it is for its return
            if instruction.kind is Kind.STOP and instruction.target is not None:
                yield from self._executed(pc, pc + instruction.target[1])
            for expression in self._written(instruction):
                value = self._evaluator.value(expression, state, pc)
                # In an object file, functions have addresses as low as the numbers with which code computes.
                is_address = value[0] == NUMBER and (expression[0] == PC_RELATIVE or not is_count(value))
                if is_address and value[1] & _MASK in instructions:
                    yield value[1] & _MASK
            self._evaluator.apply(instruction, state, pc)
            pc += instruction.size
            if pc in blocks.states or instruction.kind:
                return

    def _executed(self, pc: int, executed: int) -> Iterator[int]:
        """Yield where an instruction may jump that another one executes, with some bits changed."""
        sweep = self._program.sweep_at(executed)
        raw = sweep.bytes_at(executed, self._program.machine.max_size)
        distances = {to for at, to in self._program.machine.jumps(raw) if not at}
        for distance in distances.union(jumps(sweep.instruction(executed))):
            yield from (at + distance for at in (pc, executed) if at + distance in self._sweep.instructions)

    def _written(self, instruction: Instruction) -> Iterator[Expression]:
        """Yield the values of general registers and of memory that an instruction writes."""
        yield from (value for register, value in instruction.puts if register in self._general)
        yield from (value for _, _, value in instruction.stores)
