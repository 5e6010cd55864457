"""Interprets one function: certain paths first, then those that are only guessed."""

from __future__ import annotations

from sframe_unwind.code.image.jump_tables import Targets
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.blocks import Budget
from sframe_unwind.code.interpret.flow import Flow, Found, Settings
from sframe_unwind.code.interpret.program import Program
from sframe_unwind.code.interpret.run import Run, address_of
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.table_jumps import TableJump


class Attempt(Flow):
    """One attempt to interpret a function.

    :param found: the facts that earlier attempts found; this attempt adds to them.
    """

    def __init__(self, program: Program, function: CodeRange, found: Found, budget: Budget, settings: Settings) -> None:
        super().__init__(program, function, found, budget, settings)
        self._listed: set[int] = set()

    def run(self, entries: dict[int, State]) -> Run:
        """Interpret the function.

        :param entries: the states in which it is entered, by address.
        :raises Restart: it has to be interpreted again, with the facts that were found.
        :raises GivenUp: it takes too long.
        """
        for address, state in entries.items():
            self._blocks.join(address, state)
        self._drain()
        if self._later:
            self._follow_traps()
        self._follow_labels()
        self._follow_other_frames()
        self._tables.check()
        self._blocks.settle()
        guessed = set(self._blocks.guessed)
        self._follow_tables()
        listed = set() if self._is_lost else self._blocks.guessed - guessed
        self._guess()
        returns = self._ends.returns
        for address, state in self._calls.after_ends.items():
            self._follow_guess(address, state)
        self._ends.returns = returns
        if listed:
            # Nothing else is known to lead to code after an address that is not reached: it may be another function's.
            reached = range(self._function.start, self._sweep.first_without(self._blocks.visited))
            self._listed = {block for block in listed if address_of(block) in reached}
        return self.result(complete=True)

    def result(self, complete: bool) -> Run:
        """Return the result.

        :param complete: ``False``: the function was given up.
        """
        blocks, ends, calls = self._blocks, self._ends, self._calls
        return Run(
            states=blocks.states,
            sources=blocks.sources,
            guessed=blocks.guessed,
            listed=self._listed,
            continued=self._elsewhere.continued,
            called=calls.called,
            returns=ends.returns or not complete,
            changes_fp=ends.changes_fp,
            returns_to=frozenset(ends.returns_to),
            replaces_return=ends.replaces_return,
            rests_on_call=self._evaluator.rests_on_call,
            is_local=self._is_local and not calls.catches and not self._evaluator.has_read,
            stack_pointers_at_end=frozenset(ends.stack_pointers_at_end),
            stack_pointers_at_return=frozenset(ends.stack_pointers_at_return),
            has_return=ends.has_return,
            presumes=blocks.presumes or bool(self._found.dead),
            complete=complete,
            certain=complete and not self._lost.unresolved and self._tables.are_certain,
            meets=blocks.meets,
            apart=blocks.ways is not None,
            # After giving up, some changed states have not been followed any more.
            proved=self._proved if complete else {},
            ends_as_entered=complete and ends.as_entered,
            restored=ends.restored(self._evaluator.exposes_frame),
            stores=frozenset(self._evaluator.written),
            passed=frozenset(calls.passed),
        )

    def _follow_traps(self) -> None:
        """Follow the code after traps if nothing else leads there.

        The handler of a trap may continue there, or not: for Xen's emulation, letters follow a trap.
        """
        certain = frozenset(self._blocks.visited)
        while self._later:
            address, state = self._later.pop()
            if address not in self._blocks.visited and self._function.start <= address < self._function.end:
                self._blocks.join(address, state)
                self._drain()
        self._blocks.guessed.update(block for block in self._blocks.states if address_of(block) not in certain)

    def _follow_labels(self) -> None:
        """Follow jumps with unknown targets to the addresses that the function computes."""
        certain, done = frozenset(self._blocks.visited), set[int]()
        while labels := {pc: state for pc, state in self._lost.labels(self._blocks).items() if pc not in done}:
            done |= labels.keys()
            for address, state in labels.items():
                self._blocks.current = None
                self._blocks.join(address, state)
            self._drain()
        if done:
            self._blocks.guessed.update(block for block in self._blocks.states if address_of(block) not in certain)

    def _follow_other_frames(self) -> None:
        """Follow jumps by tables with an uncertain number of entries to code that is reached with another frame.

        Compilers do not make such code, so what is taken for an entry may be none: the code is then unknown.
        """
        for jump in list(self._tables.jumps.values()):
            for target in () if jump.targets.certain else jump.targets.addresses:
                known = self._blocks.states.get(target)
                if known is not None and self._blocks.conflicts(known, jump.state):
                    self._blocks.current = None
                    self._blocks.join(target, jump.state)
                    self._drain()

    def _guess(self) -> None:
        """Follow jumps with unknown targets to code to which nothing else leads."""
        if not self._lost.unresolved:
            return
        state = self._lost.joined(self._lost.unresolved)
        for address in self._sweep.after_jumps():
            if address not in self._blocks.visited:
                self._blocks.join(address, state)
                self._drain()

    def _follow_tables(self) -> None:
        """Follow jumps by tables as if their tables were longer, to code that is not certain otherwise.

        The number of entries is taken from the last comparison, which need not be that of the index.  Compilers may
        also know the values that an index can have, and leave the comparison out.
        """
        done: set[int] = set()
        while left := self._tables.jumps.keys() - done:
            pc = min(left)
            done.add(pc)
            jump = self._tables.jumps[pc]
            if not jump.targets.certain:
                self._follow(jump, jump.targets)
            if jump.values is not None:
                self._follow(jump, self._tables.targets(jump.entry, None))

    def _follow(self, jump: TableJump, found: Targets) -> None:
        """Follow a jump to its targets, except those in certain code; the states of several jumps are joined."""
        for target in found.addresses:
            self._follow_guess(target, jump.state, joins=True)

    def _follow_guess(self, target: int, state: State, joins: bool = False) -> None:
        """Follow guessed code, if it has not been visited or the states are to be joined."""
        if joins or target not in self._blocks.visited:
            self._blocks.current = None
            self._flow(target, state)
            self._drain()
