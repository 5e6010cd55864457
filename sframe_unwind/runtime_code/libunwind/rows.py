"""Converts the regions of a procedure to rows: the offset from which each rule applies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Callable, Union

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError, counted
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.runtime_code.libunwind.layout import Tag
from sframe_unwind.runtime_code.libunwind.regions import Directive, Region
from sframe_unwind.runtime_code.libunwind.state import DirectiveMachine, State
from sframe_unwind.unwind_rule import UnwindRule

_BEFORE = -1
"""Value of ``when`` for a directive that takes effect before the first instruction of the region."""

Resolve = Callable[[int], UnwindRule]
"""Returns the rule for the code at an address, for ``ALIAS``; raises :class:`SFrameError`."""


class Alias(NamedTuple):
    """A region that has the rules of other code of the same length.  Its other directives are ignored."""

    start: int
    """Start of the region, in bytes from the start of the procedure."""
    address: int
    """Address of the other code."""

    def rule(self, offset: int, resolve: Resolve) -> UnwindRule:
        """Return the rule at an offset, in bytes from the start of the procedure."""
        return resolve(self.address + offset - self.start & ADDRESS_MASK)


RegionRow = tuple[int, Union[UnwindRule, Alias]]
"""Offset in bytes from the start of the procedure, and the rule or alias from there on."""


class _RegionState:
    """The state within one region, while the builder executes its directives in order."""

    def __init__(self, machine: DirectiveMachine, entry: State, frames: tuple[State, ...]) -> None:
        self._machine = machine
        self._entry = entry
        self.state = entry
        self._frames = frames
        self._popped: State | None = None

    def frames(self) -> tuple[State, ...]:
        """Return the states that ``POP_FRAMES`` can restore: one before each stack frame, the outermost first."""
        return self._frames if self.state.frame == self._entry.frame else (*self._frames, self._entry)

    def copy(self, state: State, frames: tuple[State, ...]) -> None:
        """Continue as if the region had begun in another state."""
        self._entry = self.state = state
        self._frames = frames

    def pop(self, count: int) -> None:
        """Undo the innermost ``count`` stack frames, or all if there are fewer."""
        frames = self.frames()
        if count > 0 and frames:
            self._popped = frames[-min(count, len(frames))]
            self._frames = frames[: -min(count, len(frames))]
            self.state = self._entry = self._machine.pop(self.state, self._popped)

    def end(self) -> State:
        """Return the state in which the next region begins."""
        if self._popped is None:
            return self.state
        # After POP_FRAMES, registers saved in registers stay valid until the end of the region.
        kept = {
            number: rule for number, rule in self.state.saved.items() if rule.in_memory or number in self._popped.saved
        }
        return self.state._replace(saved=kept)


class _Builder:
    def __init__(self, arch: Arch, resolve: Resolve) -> None:
        self._arch = arch
        self._machine = DirectiveMachine(arch)
        self._unit = arch.libunwind_unit
        self._resolve = resolve
        self._labels: dict[int, tuple[State, tuple[State, ...]]] = {}
        self.rows: list[RegionRow] = []

    def build(self, regions: Sequence[Region], size: int) -> None:
        state, frames = self._machine.entry(), tuple[State, ...]()
        self._note(0, state)
        position = 0
        for region in regions:
            length = abs(region.insn_count) * self._unit
            if region.insn_count < 0:
                if size - length < position:
                    raise FormatError(
                        f"region at {region.address:#x} is the last {counted(length, 'byte')} of a procedure of {size},"
                        f" {position} of which belong to other regions"
                    )
                position = size - length
            alias = next((d.value for d in region.directives if d.tag is Tag.ALIAS), None)
            if alias is None:
                state, frames = self._region(region, position, length, state, frames)
            else:
                other = Alias(position, alias & ADDRESS_MASK)
                self._note(position, other)
                if position + length < size:
                    state = self._machine.state(other.rule(position + length, self._resolve))
            position += length
            self._note(position, state)

    def _region(
        self, region: Region, position: int, length: int, state: State, frames: tuple[State, ...]
    ) -> tuple[State, tuple[State, ...]]:
        """Add the rows of a region; return the state and the stack frames at the start of the next region."""
        running = _RegionState(self._machine, state, frames)
        for when, directives in groupby(_ordered(region.directives), key=itemgetter(0)):
            # Execute ADD to SP first: offsets from SP are relative to its value after the instruction.
            for _, directive in sorted(directives, key=lambda pair: not self._moves_sp(pair[1])):
                self._carry_out(running, directive)
            self._note(position + (0 if when == _BEFORE else min((when + 1) * self._unit, length)), running.state)
        return running.end(), running.frames()

    def _moves_sp(self, directive: Directive) -> bool:
        return directive.tag is Tag.ADD and directive.register == self._arch.sp

    def _carry_out(self, running: _RegionState, directive: Directive) -> None:
        machine, (tag, number, _, value) = self._machine, directive
        register = machine.number(number)
        if tag is Tag.ADD:
            running.state = machine.add(running.state, register, value)
        elif tag is Tag.SAVE_REG:
            running.state = machine.save(running.state, register, value)
        elif tag is Tag.POP_FRAMES:
            running.pop(value)
        elif tag is Tag.LABEL_STATE:
            self._labels[value] = running.state, running.frames()
        elif tag is Tag.COPY_STATE:
            if value not in self._labels:
                raise FormatError(f"COPY_STATE of the label {value}, which no state has")
            running.copy(*self._labels[value])
        else:
            running.state = machine.spill(running.state, register, value, tag is Tag.SPILL_SP_REL)

    def _note(self, offset: int, what: State | Alias) -> None:
        """Add a row at an offset; it replaces rows at the same or a later offset."""
        found = what if isinstance(what, Alias) else self._machine.rule(what)
        while self.rows and self.rows[-1][0] >= offset:
            self.rows.pop()
        if not self.rows or self.rows[-1][1] != found:
            self.rows.append((offset, found))


def _ordered(directives: Sequence[Directive]) -> list[tuple[int, Directive]]:
    """Return the directives in the order in which they take effect, each with the time.

    ``LABEL_STATE`` and ``COPY_STATE`` have no time of their own.  A label refers to the state after the directives
    before it in the list.  A copied state is the state at the start of the region.
    """
    timed: list[tuple[int, Directive]] = []
    latest = _BEFORE
    for directive in directives:
        when = max(directive.when, _BEFORE)
        if directive.tag is Tag.LABEL_STATE:
            when = max(when, latest)
        latest = max(when, latest)
        timed.append((when, directive))
    return sorted(timed, key=itemgetter(0))


def build_rows(arch: Arch, regions: Sequence[Region], size: int, resolve: Resolve) -> list[RegionRow]:
    """Return the rows of a procedure.

    :param size: length of the procedure in bytes.
    :param resolve: finds the rules of other code, for ``ALIAS``.
    :raises FormatError: a directive is not valid in its state.
    """
    builder = _Builder(arch, resolve)
    builder.build(regions, size)
    return builder.rows
