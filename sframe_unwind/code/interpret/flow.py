"""Follows the paths of one function, up to a fixpoint of the states."""

from __future__ import annotations

from sframe_unwind.code.decode.instruction import Instruction, Kind
from sframe_unwind.code.image.jump_tables import Entry
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.blocks import Blocks, Budget, GivenUp
from sframe_unwind.code.interpret.calls import Calls
from sframe_unwind.code.interpret.conditions import BOUND
from sframe_unwind.code.interpret.effects import Effects
from sframe_unwind.code.interpret.elsewhere import Elsewhere
from sframe_unwind.code.interpret.ends import Ends
from sframe_unwind.code.interpret.lost_jumps import LostJumps
from sframe_unwind.code.interpret.program import Program
from sframe_unwind.code.interpret.run import Prover, address_of
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.table_jumps import TableJump, TableJumps
from sframe_unwind.code.interpret.values import JUMP_ENTRY, NUMBER, OTHER, UNKNOWN
from sframe_unwind.named_tuple import NamedTuple

_MASK = (1 << 64) - 1


class Found(NamedTuple):
    """The facts that an attempt to interpret a function finds for the next attempt."""

    dead: set[int]
    """Addresses after calls that do not return."""
    tables: set[int]
    """Start addresses of tables."""


class Settings(NamedTuple):
    """How a function is interpreted."""

    effects: Effects | None
    """``None``: callees are assumed to keep the ABI."""
    apart: bool
    """Whether states with different stack pointers are kept apart."""
    prover: Prover | None
    """Called for each instruction of the function itself."""


class Flow:
    """The paths of one function, as far as they are certain.

    :param found: the facts that earlier attempts found; this attempt adds to them.
    """

    def __init__(self, program: Program, function: CodeRange, found: Found, budget: Budget, settings: Settings) -> None:
        self._all = program
        self._evaluator = program.evaluator
        self._frame = program.frame
        self._image = program.image
        self._function = function
        self._found = found
        self._budget = budget
        self._settings = settings
        self._sweep = program.sweeps.sweep(function)
        self._blocks = Blocks(self._frame, found.dead, budget, settings.apart)
        self._ends = Ends(self._frame)
        self._calls = Calls(program, function, settings.effects, self._ends)
        self._tables = TableJumps(program, function, found.tables, budget)
        self._elsewhere = Elsewhere(program, function)
        self._later: list[tuple[int, State]] = []
        self._lost = LostJumps(program, self._sweep)
        self._is_local = True
        self._is_lost = False
        self._proved: dict[int, int] = {}

    @property
    def _is_certain(self) -> bool:
        """Whether the code that is executed is certain."""
        return self._blocks.settled is None

    def _drain(self) -> None:
        while (block := self._blocks.next()) is not None:
            self._block(block, self._blocks.states[block].copy())

    def _block(self, block: int, state: State) -> None:
        """Interpret from the start of a block to a jump, or to the start of another block."""
        pc = address_of(block)
        sweep = self._sweep if pc in self._sweep.instructions else self._all.sweep_at(pc)
        blocks, budget = self._blocks, self._budget
        evaluator, instructions, starts = self._evaluator, sweep.instructions, sweep.starts
        first, visited = True, blocks.visited
        blocks.current = block
        self._proved.pop(block, None)
        prover = self._settings.prover if sweep is self._sweep else None
        if prover is not None:
            prover.begin()
        while True:
            instruction = instructions.get(pc)
            if instruction is None:
                instruction = sweep.instruction(pc)
            if not first and (pc in starts or pc in blocks.states):
                # After a call that does not return, there may be padding, and then code to which other paths lead.
                start = address_of(block)
                after_call = block in blocks.after_call and sweep.after_padding(start) >= pc
                self._flow(pc, state, after_call, is_left=True)
                if prover is not None and pc in blocks.states:
                    self._proved[block] = pc
                return
            if prover is not None and not prover.holds(pc, instruction, state):
                prover = None
            first, blocks.leaving = False, pc
            visited.add(pc)
            budget.left -= 1
            if budget.left < 0:
                raise GivenUp
            if instruction.kind or instruction.exits:
                if not self._transfer(pc, instruction, state):
                    if prover is not None and instruction.kind is not Kind.SYSTEM:
                        self._proved[block] = pc + instruction.size
                    return
            else:
                evaluator.apply(instruction, state, pc)
            pc += instruction.size
            if not sweep.function.start <= pc < sweep.function.end:
                if prover is not None:
                    self._proved[block] = pc
                self._flow(pc, state, is_left=True)
                return

    def _transfer(self, pc: int, instruction: Instruction, state: State) -> bool:
        """Follow an instruction that may not continue at the next one; return whether it may, with the state there."""
        for leaving in instruction.exits:
            after = self._evaluator.apply_until(leaving, instruction, state, pc)
            target = self._evaluator.value(leaving.target, state, pc)
            elsewhere = target[0] != NUMBER or self._image.external_call(pc, instruction.size) is not None
            if not self._evaluator.holds(leaving.condition, state, after, pc):
                continue
            if not elsewhere:
                self._flow(target[1] & _MASK, after, is_left=True)
            elif target[0] != NUMBER and target != self._frame.return_address and self._is_certain:
                self._lost.leave(after)
        kind = instruction.kind
        if kind is Kind.NEXT:
            return self._evaluator.pass_on(instruction, state, pc)
        if kind is Kind.SYSTEM:
            base, number = state.registers.get(self._all.machine.system_call, OTHER)
            if base == NUMBER and number in self._all.machine.ending_calls:
                return False
            self._evaluator.system_call(state)
            return self._evaluator.pass_on(instruction, state, pc)
        if kind is Kind.CALL and (instruction.link is not None or self._all.machine.arch.ra is None):
            for way in self._calls.ways(pc, instruction, state, self._is_certain):
                self._flow(*way)
            return False
        if kind in (Kind.JUMP, Kind.CALL) or self._tables.is_jump(pc, instruction, state):
            is_plain = not (instruction.puts or instruction.stores or instruction.exits)
            before = state if is_plain else state.copy()
            if self._evaluator.pass_on(instruction, state, pc):
                self._jump(pc, instruction, before, state)
        elif kind is Kind.RETURN:
            self._ends.leave(state, self._is_certain)
            self._ends.has_return |= self._is_certain
            to = UNKNOWN if instruction.target is None else self._evaluator.value(instruction.target, state, pc)
            if self._is_certain:
                after = state.copy()
                self._evaluator.apply(instruction, after, pc)
                # Without a caller, as after a jump that cannot be taken, nothing is learned about the caller's state.
                if to != OTHER:
                    self._ends.pass_to_caller(state, after)
                if to[0] == NUMBER:
                    self._flow(to[1] & _MASK, after)
                elif to != self._frame.return_address:
                    self._lost.leave(after)
            self._ends.return_to(to, self._evaluator.has_replaced)
        elif kind is Kind.TRAP:
            self._later.append((pc + instruction.size, state))
        else:
            self._ends.returns = True
            if self._is_certain:
                if self._all.machine.execute is not None:  # it may execute any other instruction
                    self._evaluator.apply(self._all.machine.anything(instruction.size), state, pc)
                self._lost.leave(state)  # what is not known may be a jump
        return False

    def _jump(self, pc: int, instruction: Instruction, before: State, state: State) -> None:
        assert instruction.target is not None
        target = self._evaluator.value(instruction.target, before, pc)
        if target[0] != NUMBER:
            self._ends.returns_to.add(target)
        if self._image.external_call(pc, instruction.size) is not None or target == self._frame.return_address:
            self._ends.returns = True
            if self._is_certain and target == self._frame.return_address:
                self._ends.pass_to_caller(before, state)
        elif target[0] == NUMBER:
            self._flow(target[1] & _MASK, state)
        elif target[0] == JUMP_ENTRY:
            self._is_local = False
            self._jump_by_table(pc, self._evaluator.entries[target[1]], state)
        else:
            self._ends.leave(state, self._is_certain, target)
            if self._is_certain:
                self._lost.leave(state)
            plt = self._image.plt(pc)
            if plt is not None and plt.first <= pc and pc + instruction.size < self._function.end:
                # Until the function is bound, the table of addresses leads back to after the jump.
                self._flow(pc + instruction.size, state)
            elif not self._frame.is_entry(state):
                self._lose(state)

    def _jump_by_table(self, pc: int, entry: Entry, state: State) -> None:
        base, bound = state.registers.get(BOUND, OTHER)
        count = bound + 1 if base == NUMBER else None
        found = self._tables.targets(entry, count)
        if not found.addresses:
            self._lose(state)
            return
        self._tables.jumps[pc] = TableJump(entry, count, found, state.copy())
        if found.certain or not self._is_certain:
            for target in found.addresses:
                self._flow(target, state)

    def _lose(self, state: State) -> None:
        """Record a jump to unknown targets."""
        self._ends.returns = self._is_lost = True
        if self._is_certain:
            self._lost.unresolved.append(state.copy())

    def _flow(self, target: int, state: State, after_call: bool = False, is_left: bool = False) -> None:
        """Follow a jump.

        :param is_left: the state is not changed later.
        """
        if self._function.start <= target < self._function.end:
            self._blocks.join(target, state, after_call, is_left)
            return
        self._is_local = False
        if target == self._function.end and self._image.plt(self._function.start) is not None:
            return  # the target is padding after the last stub, which ends in a jump
        other = self._all.ranges.find(target)
        if other is None and self._elsewhere.is_detour(target):
            self._blocks.join(target, state, after_call)
            return
        if other is None or self._elsewhere.is_tail_call(target, other, state, self._is_certain):
            if target not in self._all.not_returning:
                self._ends.leave(state, self._is_certain)
                if self._is_certain:
                    self._calls.leave(target, state.copy())
            if other is not None and target == other.start and self._frame.is_entry(state):
                self._calls.called.add(target)
            return
        self._ends.returns = True
        if self._elsewhere.enter(target, other):
            self._blocks.join(target, state, after_call)
