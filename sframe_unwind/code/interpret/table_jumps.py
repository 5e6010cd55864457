"""Finds the targets of a function's jumps by tables."""

from __future__ import annotations

from sframe_unwind.code.decode.instruction import Instruction, Kind
from sframe_unwind.code.image.jump_tables import Entry, Targets, targets
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.blocks import Budget, Restart
from sframe_unwind.code.interpret.program import Program
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.values import JUMP_ENTRY
from sframe_unwind.named_tuple import NamedTuple

_READ_PER_STEP = 32
"""Number of table entries that are read in the time of a step."""


class TableJump(NamedTuple):
    """A jump by a table."""

    entry: Entry
    values: int | None
    """Number of values of its index; ``None``: not known."""
    targets: Targets
    state: State


class TableJumps:
    """The jumps of one function by tables.

    :param tables: known start addresses of tables; this adds to them.
    """

    def __init__(self, program: Program, function: CodeRange, tables: set[int], budget: Budget) -> None:
        self._program = program
        self._function = function
        self._sweep = program.sweeps.sweep(function)
        self._tables = tables
        self._budget = budget
        self._read: dict[tuple[Entry, int | None], Targets] = {}
        self.jumps: dict[int, TableJump] = {}
        """By the address of the instruction."""

    @property
    def are_certain(self) -> bool:
        """Whether the targets of all jumps are known for certain."""
        return all(jump.targets.certain for jump in self.jumps.values())

    def is_jump(self, pc: int, instruction: Instruction, state: State) -> bool:
        """Return whether an apparent return is a jump by a table: on s390x, any register can have the target."""
        target = instruction.target
        if instruction.kind is not Kind.RETURN or target is None or self._program.machine.returns_through is None:
            return False
        return self._program.evaluator.value(target, state, pc)[0] == JUMP_ENTRY

    def targets(self, entry: Entry, count: int | None) -> Targets:
        """Return the targets of a jump by a table.

        :param count: number of values of its index; ``None``: not known.
        :raises GivenUp: reading the tables takes too long.
        """
        found = self._read.get((entry, count))
        if found is None:
            found = self._read[entry, count] = self._read_targets(entry, count)
            self._budget.spend((found.end - entry.table) // entry.size // _READ_PER_STEP)
        return found

    def _read_targets(self, entry: Entry, count: int | None) -> Targets:
        def is_target(address: int) -> bool:
            if address in self._sweep.instructions:
                return True
            # Parts of a function may be elsewhere, with or without a frame.  Entries that lead to other code belong to
            # the next function's table.
            other = self._program.ranges.find(address) if count is not None else None
            return other is not None and (address == other.start or other.start in self._program.unentered)

        def is_followed(address: int) -> bool:
            other = self._program.ranges.find(address)
            return address in self._sweep.instructions or (other is not None and other.start in self._program.unentered)

        found = targets(
            entry=entry,
            bound=count,
            tables=self._tables,
            image=self._program.image,
            is_target=is_target,
            end=self._function.end,
        )
        # Code with the row of an entry is entered by a call, if at all.
        return found._replace(addresses=list(filter(is_followed, found.addresses)))

    def check(self) -> None:
        """Check that no table was read beyond the start of another table that was found later.

        :raises Restart: one was; the function has to be interpreted again.
        """
        begun = self._program.evaluator.entries.tables - self._tables
        for jump in self.jumps.values():
            if any(jump.entry.table < table < jump.targets.end for table in begun):
                self._tables |= begun
                raise Restart
