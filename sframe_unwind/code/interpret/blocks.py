"""The blocks of a function that is interpreted: their states, and which of them have to be executed again."""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush

from sframe_unwind.code.interpret.run import Source
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.values import CFA, Value

_SORTED_PER_STEP = 32
"""Number of states that are sorted in the time of a step."""
_ADDRESS_BITS = 64
_MAX_WAYS = 16
"""Maximum number of stack pointers with which one instruction is followed, if they are kept apart."""


class Restart(Exception):  # noqa: N818  # no error: a call was found not to return, or a table to end earlier
    """The function has to be interpreted again from the start, with the facts that were found meanwhile."""


class GivenUp(Exception):  # noqa: N818  # no error: the function takes too long
    """The function takes too long to interpret."""


class Budget:
    """The number of instructions that may still be executed for a function."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Count executed instructions, or other work that takes as long.

        :raises GivenUp: none is left.
        """
        self.left -= steps
        if self.left < 0:
            raise GivenUp


class Blocks:
    """The states at the starts of blocks; see :attr:`Run.states`.

    :param dead: addresses after calls that do not return; this adds to them.
    :param apart: keep states with different stack pointers apart.
    """

    def __init__(self, frame: Frame, dead: set[int], budget: Budget, apart: bool) -> None:
        self._frame = frame
        self._dead = dead
        self._budget = budget
        self.states: dict[int, State] = {}
        self.sources: dict[int, set[Source]] = {}
        self.current: int | None = None
        """The block that is executed; ``None``: the code is only guessed."""
        self.leaving = 0
        """Address of the instruction that is executed."""
        self.visited: set[int] = set()
        """Addresses of the instructions that were executed."""
        self.after_call: set[int] = set()
        """Addresses that are reached only from calls before them that may not return."""
        self.guessed: set[int] = set()
        self.settled: frozenset[int] | None = None
        """The certain instructions, as soon as all of them are known."""
        self.presumes = False
        self.meets = False
        self.ways: dict[int, dict[Value, int]] | None = {} if apart else None
        """The stack pointers with which an address is reached, and their numbers; ``None``: they are not kept apart."""
        self._work: list[int] = []
        self._waiting: set[int] = set()

    def settle(self) -> None:
        """Record that all certain code has been found."""
        self.settled, self.current = frozenset(self.visited), None

    def next(self) -> int | None:
        """Return the first block that has to be executed; ``None``: there is none."""
        if not self._work:
            return None
        block = heappop(self._work)
        self._waiting.discard(block)
        return block

    def join(self, target: int, state: State, after_call: bool = False, is_left: bool = False) -> None:
        """Add a state before an instruction to what is known there.

        :param after_call: the instruction follows a call that may not return.
        :param is_left: the caller of this method does not use the state again.
        :raises Restart: a call was found not to return.
        :raises GivenUp: there are too many stack pointers to keep apart.
        """
        if self.settled is not None and target in self.settled:
            return
        block = target if self.ways is None else self._way(self.ways, target, state)
        known = self.states.get(block)
        if self.current is not None:
            source = tuple.__new__(Source, (self.current, self.leaving))  # half the time of calling the class
            sources = self.sources.get(block)
            if sources is None:
                self.sources[block] = {source}
            else:
                sources.add(source)
        if known is None:
            if after_call and target in self._dead:
                return
            self.states[block] = state if is_left else state.copy()
            if block == target and after_call:
                self.after_call.add(target)
            elif block == target and target in self.visited:
                self._split(target)
        else:
            sp = self._frame.sp
            left, right = known.registers[sp], state.registers[sp]
            self.meets |= left != right and left[0] == right[0]
            if left != right and self.conflicts(known, state):
                # Compilers never let paths with different stack pointers meet, so the call does not return.
                if after_call:
                    self.presumes = True
                    return
                if target in self.after_call and target not in self._dead:
                    self._dead.add(target)
                    raise Restart
            if not after_call:
                self.after_call.discard(target)
            if not self._frame.join(known, state, target):
                return
        if self.settled is not None:
            self.guessed.add(block)
        self._wait(block)

    def _wait(self, block: int) -> None:
        if block not in self._waiting:
            self._waiting.add(block)
            heappush(self._work, block)

    def _way(self, ways: dict[int, dict[Value, int]], target: int, state: State) -> int:
        """Return the block at an address for states with the stack pointer of a state."""
        known = ways.setdefault(target, {})
        number = known.setdefault(state.registers[self._frame.sp], len(known))
        if number >= _MAX_WAYS:
            raise GivenUp
        return target | number << _ADDRESS_BITS

    def _split(self, target: int) -> None:
        """Run a block again after a jump into its middle was found: it now ends there."""
        starts = sorted(self.states)
        self._budget.left -= len(starts) // _SORTED_PER_STEP
        before = starts[max(bisect_left(starts, target) - 1, 0)]
        while before in self.states:
            self._wait(before)
            before += 1 << _ADDRESS_BITS

    def conflicts(self, known: State, state: State) -> bool:
        """Return whether two states have stack pointers that are certainly different."""
        sp = self._frame.sp
        left, right = known.registers[sp], state.registers[sp]
        return left != right and left[0] == right[0] == CFA
