"""Walks over the blocks of an interpreted function."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.code.decode.instruction import Kind
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run, address_of
from sframe_unwind.code.interpret.state import State


def walk(interpreter: Interpreter, run: Run, start: int) -> Iterator[tuple[int, State]]:
    """Yield the addresses of the instructions of a block, each with the state before it, which changes in place."""
    pc, state = address_of(start), run.states[start].copy()
    sweep = interpreter.sweep_at(pc)
    interpreter.evaluator.compares_constants = run.apart
    while True:
        instruction = sweep.instructions.get(pc) or sweep.instruction(pc)
        if not instruction.size:
            return
        yield pc, state
        if instruction.kind not in (Kind.NEXT, Kind.SYSTEM):
            return
        if instruction.kind is Kind.SYSTEM:
            interpreter.evaluator.system_call(state)
        if not interpreter.evaluator.pass_on(instruction, state, pc):
            return
        pc += instruction.size
        if pc in run.states or not sweep.function.start <= pc < sweep.function.end:
            return
