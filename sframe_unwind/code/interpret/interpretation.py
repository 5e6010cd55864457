"""Interprets functions abstractly, up to a fixpoint: the state before each reachable instruction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from sframe_unwind.code.decode.instruction import Instruction, Kind
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.exception_tables import LandingPads
from sframe_unwind.code.image.jump_tables import Entry, Targets, targets
from sframe_unwind.code.image.not_returning import is_not_returning
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges, Starts
from sframe_unwind.code.interpret.effects import Effects
from sframe_unwind.code.interpret.evaluation import BOUND, Evaluator, Written
from sframe_unwind.code.interpret.state import Frame, State
from sframe_unwind.code.interpret.sweep import Sweep, Sweeps
from sframe_unwind.code.interpret.values import (
    CFA,
    JUMP_ENTRY,
    NUMBER,
    OTHER,
    REPLACED_BASE,
    UNKNOWN,
    Value,
    is_open,
    on_stack,
    plus,
)

_MASK = (1 << 64) - 1
_MAX_RESTARTS = 16
_STEPS_PER_INSTRUCTION, _MIN_STEPS, _MAX_STEPS = 40, 4000, 4_000_000
"""Limits of executed instructions, after which a function is given up."""
_SORTED_PER_STEP, _READ_PER_STEP = 32, 32
"""Number of states that are sorted, and of table entries that are read, in the time of a step."""
_MAX_FOREIGN = 64
"""Maximum number of other functions that are followed from one."""
_ADDRESS_BITS = 64
_REACH_OF_CALLEE = 1 << 16
"""How far from a pointer a callee's stores are examined, in bytes."""
_DETOUR = 256
"""Maximum size of code that belongs to no function and leads back to the function that jumps there, in bytes."""
_MAX_WAYS = 16
"""Maximum number of stack pointers with which one instruction is followed, if they are kept apart."""


def address_of(block: int) -> int:
    """Return the address of a block's first instruction.

    A block is identified by that address.  If states with different stack pointers are kept apart, a number in the bits
    above it distinguishes the stack pointers.
    """
    return block & _MASK


class Source(NamedTuple):
    """An instruction that leads to a block."""

    block: int
    """Start of the block with the instruction."""
    pc: int
    """Address of the instruction."""


class Passed(NamedTuple):
    """A pointer that a function passes to another one of the file."""

    called: int
    """Address of the callee."""
    register: int
    distance: int
    """Of a saved register from where it points, in bytes."""


class _TableJump(NamedTuple):
    """A jump by a table."""

    entry: Entry
    values: int | None
    """Number of values of its index; ``None``: not known."""
    targets: Targets
    state: State


class Run(NamedTuple):
    """The result of interpreting a function."""

    states: dict[int, State]
    """The states at the starts of blocks, by block (:func:`address_of`); each reaches to the next, or to a jump."""
    sources: dict[int, set[Source]]
    """The instructions that lead to each block."""
    guessed: set[int]
    """Blocks to which only a jump with uncertain targets, or a trap's handler, may lead."""
    continued: set[int]
    """Starts of other functions that were entered with this function's frame."""
    called: set[int]
    """Called addresses."""
    returns: bool
    """Whether any path returns to the caller, or may."""
    changes_fp: bool
    """Whether it certainly returns with another frame pointer than at its entry."""
    returns_to: frozenset[Value]
    """The values to which it jumps when it returns, or when it jumps to the value of a register."""
    replaces_return: bool
    """Whether it may return to a value that it has stored over its return address."""
    rests_on_call: bool
    """Whether the stack pointer was taken from a register other than the frame pointer."""
    is_local: bool
    """Whether only the function's own code was used."""
    stack_pointers_at_end: frozenset[Value]
    """The stack pointers when it returns to its caller, or jumps to another function instead of returning."""
    stack_pointers_at_return: frozenset[Value]
    """The stack pointers with which its caller continues, if it returns to its caller."""
    has_return: bool
    """Whether it has a return instruction, whatever its target is."""
    presumes: bool
    """Whether a call was assumed not to return because paths with other stack pointers lead to the address after it."""
    complete: bool
    """``False``: the function was given up."""
    certain: bool
    """All targets of its jumps are known for certain."""
    meets: bool
    """Whether paths meet at some place with stack pointers at a constant distance from each other."""
    apart: bool
    """Whether these paths were kept apart."""
    proved: dict[int, int]
    """The blocks of the function itself in which everything was proved that was to be proved, and their ends."""
    ends_as_entered: bool
    """Whether it is left without a frame on all paths, in the state that the ABI has at a function's entry."""
    restored: frozenset[int]
    """The followed registers that hold what they held at the entry wherever it is left."""
    stores: frozenset[Written]
    """Its stores above its frame and through pointers that it got."""
    passed: frozenset[Passed]
    """The pointers to saved registers that it passes to functions of the file."""
    pushed: int = 0
    """Number of bytes on the stack at the entry in addition to those of the ABI, as its end shows."""


class _Restart(Exception):  # noqa: N818  # no error: a call was found not to return, or a table to end earlier
    pass


class _GivenUp(Exception):  # noqa: N818  # no error: the function takes too long
    pass


class Prover(Protocol):
    """Tells for the instructions of each block, in order, whether the required proofs succeed."""

    def begin(self) -> None:
        """Begin a block."""

    def holds(self, pc: int, instruction: Instruction, state: State) -> bool:
        """Return whether the proof succeeds in the state before an instruction; if not, the block is skipped."""


class Interpreter:
    """Interprets the functions of one file.

    :param ranges: ranges of all functions.
    :param landing_pads: places where an exception that passes through a call may be caught, by the address before the
        call's return address.
    :param max_steps: maximum number of executed instructions, after which a function is given up.
    :param tracked: registers that are followed to the slots in which they are saved, besides the frame pointer.
    """

    def __init__(
        self,
        image: CodeImage,
        machine: Machine,
        lifter: Lifter,
        ranges: CodeRanges,
        landing_pads: LandingPads,
        max_steps: int = _MAX_STEPS,
        tracked: Iterable[int] = (),
    ) -> None:
        self.image = image
        self.machine = machine
        self.frame = Frame(machine, tracked)
        self.ranges = ranges
        self.landing_pads = landing_pads
        self.evaluator = Evaluator(machine, self.frame, image.read_constant)
        self.sweeps = Sweeps(image, lifter)
        self.not_returning = set(image.not_returning)
        self.effects = Effects(image, machine, ranges, self.sweeps, self._restored)
        self._lifter = lifter
        self._tracking: Interpreter | None = None
        self.changing_fp: set[int] = set()
        """Starts of functions that return with another frame pointer than they were called with."""
        self.moving_sp: dict[int, int | None] = {}
        """Functions that return with another stack pointer than the ABI's: how much higher; ``None``: sometimes."""
        self.coming_back = Starts(ranges)
        """Starts of functions that certainly return, on some path."""
        self.storing: dict[int, frozenset[Written]] = {}
        """Functions that store in the frames of their callers, and these stores."""
        self.unentered: frozenset[int] = frozenset()
        """Starts of functions that are entered with another function's frame according to their rows, as far as
        known."""
        self._max_steps = max_steps

    def sweep_at(self, pc: int) -> Sweep:
        """Return the instructions of the function that contains an address; without a function, those that follow."""
        return self.sweeps.sweep(self.ranges.find(pc) or self.ranges.before_next(pc, _DETOUR))

    def _restored(self, function: CodeRange) -> frozenset[int]:
        """Return the callee-saved registers that hold what they held at the entry wherever a function is left."""
        if self._tracking is None:
            preserved = self.machine.preserved - {self.frame.sp}
            self._tracking = Interpreter(
                image=self.image,
                machine=self.machine,
                lifter=self._lifter,
                ranges=self.ranges,
                landing_pads=self.landing_pads,
                max_steps=self._max_steps,
                tracked=preserved,
            )
            self._tracking.sweeps = self.sweeps
            self._tracking.not_returning = self.not_returning  # what is learned later, too
            self._tracking.moving_sp, self._tracking.coming_back = self.moving_sp, self.coming_back
        self._tracking.unentered = self.unentered
        run = self._tracking.run(function, {function.start: self._tracking.frame.entry()})
        return run.restored if run.complete else frozenset()

    def run(
        self,
        function: CodeRange,
        entries: dict[int, State],
        through_calls: bool = False,
        apart: bool = False,
        prover: Prover | None = None,
    ) -> Run:
        """Interpret a function.

        :param entries: the states in which it is entered, by address.
        :param through_calls: find the registers that called functions of the file may change.
        :param apart: keep states with different stack pointers apart, and decide conditions on constants: a loop that
            moves the stack pointer is followed round by round.  It is given up after too many rounds.
        :param prover: called for each instruction of the function itself.
        """
        dead: set[int] = set()
        tables: set[int] = set()
        self.evaluator.entries.tables.clear()
        self.evaluator.written.clear()
        self.evaluator.has_read = self.evaluator.rests_on_call = self.evaluator.has_replaced = False
        self.evaluator.compares_constants = apart
        count = len(self.sweeps.sweep(function).instructions)
        steps = max(_MIN_STEPS, min(_STEPS_PER_INSTRUCTION * count, self._max_steps))
        for _ in range(_MAX_RESTARTS):
            flow = _Flow(self, function, dead, tables, steps)
            flow.effects = self.effects if through_calls else None
            flow.ways = {} if apart else None
            flow.prover = prover
            try:
                return flow.run(entries)
            except _Restart:
                steps = flow.steps
            except _GivenUp:
                return flow.result(complete=False)
        return flow.result(complete=False)


class _Flow:
    """One attempt to interpret a function.

    :param dead: addresses after calls that do not return; the attempt adds to them.
    :param tables: known start addresses of tables; the attempt adds to them.
    """

    def __init__(
        self, interpreter: Interpreter, function: CodeRange, dead: set[int], tables: set[int], steps: int
    ) -> None:
        self._all = interpreter
        self._evaluator = interpreter.evaluator
        self._frame = interpreter.frame
        self._image = interpreter.image
        self._function = function
        self._dead = dead
        self._tables = tables
        self._sweep = interpreter.sweeps.sweep(function)
        self._states: dict[int, State] = {}
        self._sources: dict[int, set[Source]] = {}
        self._current: int | None = None
        self._leaving = 0
        self._visited: set[int] = set()
        self._after_call: set[int] = set()
        self._work: list[int] = []
        self._waiting: set[int] = set()
        self._foreign: set[CodeRange] = set()
        self._continued: set[int] = set()
        self._called: set[int] = set()
        self._later: list[tuple[int, State]] = []
        self._states_after_calls: dict[int, State] = {}
        """The code after calls that do not return, with the state if they did: tables also describe this code."""
        self._unresolved: list[State] = []
        self._table_jumps: dict[int, _TableJump] = {}
        self._read: dict[tuple[Entry, int | None], Targets] = {}
        self._guessed: set[int] = set()
        self._settled: frozenset[int] | None = None
        self._returns = self._changes_fp = self._replaces_return = False
        self._stack_pointers_at_end: set[Value] = set()
        self._stack_pointers_at_return: set[Value] = set()
        self._has_return = False
        self._ends_as_entered = True
        self._restored: set[int] | None = None
        self._passed: set[Passed] = set()
        self._presumes = False
        self._returns_to: set[Value] = set()
        self._is_local = True
        self.effects: Effects | None = None
        """``None``: callees are assumed to keep the ABI."""
        self.ways: dict[int, dict[Value, int]] | None = None
        """The stack pointers with which an address is reached, and their numbers; ``None``: they are not kept apart."""
        self._meets = False
        self.prover: Prover | None = None
        self._proved: dict[int, int] = {}
        self.steps = steps
        """Number of instructions that may still be executed."""

    def run(self, entries: dict[int, State]) -> Run:
        for address, state in entries.items():
            self._join(address, state)
        self._drain()
        if self._later:
            self._follow_traps()
        self._split_tables()
        self._settled, self._current = frozenset(self._visited), None
        self._follow_tables()
        self._guess()
        returns = self._returns
        for address, state in self._states_after_calls.items():
            self._follow_guess(address, state)
        self._returns = returns
        return self.result(complete=True)

    def result(self, complete: bool) -> Run:
        return Run(
            states=self._states,
            sources=self._sources,
            guessed=self._guessed,
            continued=self._continued,
            called=self._called,
            returns=self._returns or not complete,
            changes_fp=self._changes_fp,
            returns_to=frozenset(self._returns_to),
            replaces_return=self._replaces_return,
            rests_on_call=self._evaluator.rests_on_call,
            is_local=self._is_local and not self._evaluator.has_read,
            stack_pointers_at_end=frozenset(self._stack_pointers_at_end),
            stack_pointers_at_return=frozenset(self._stack_pointers_at_return),
            has_return=self._has_return,
            presumes=self._presumes or bool(self._dead),
            complete=complete,
            certain=complete
            and not self._unresolved
            and all(jump.targets.certain for jump in self._table_jumps.values()),
            meets=self._meets,
            apart=self.ways is not None,
            # After giving up, some changed states have not been followed any more.
            proved=self._proved if complete else {},
            ends_as_entered=complete and bool(self._stack_pointers_at_end) and self._ends_as_entered,
            restored=frozenset(self._frame.also if self._restored is None else self._restored),
            stores=frozenset(self._evaluator.written),
            passed=frozenset(self._passed),
        )

    def _drain(self) -> None:
        while self._work:
            block = heappop(self._work)
            self._waiting.discard(block)
            self._block(block, self._states[block].copy())

    def _follow_traps(self) -> None:
        """Follow the code after traps if nothing else leads there.

        A trap's handler may continue there, but need not: for Xen's emulation, letters follow a trap.
        """
        certain = frozenset(self._visited)
        while self._later:
            address, state = self._later.pop()
            if address not in self._visited and self._function.start <= address < self._function.end:
                self._join(address, state)
                self._drain()
        self._guessed.update(block for block in self._states if address_of(block) not in certain)

    def _guess(self) -> None:
        """Follow jumps with unknown targets to code that nothing else leads to."""
        if not self._unresolved:
            return
        state = self._unresolved[0].copy()
        for other in self._unresolved[1:]:
            self._frame.join(state, other, 0)
        for address in self._sweep.after_jumps():
            if address not in self._visited:
                self._join(address, state)
                self._drain()

    def _block(self, block: int, state: State) -> None:
        """Interpret from the start of a block to a jump, or to the start of another block."""
        pc = address_of(block)
        sweep = self._sweep if pc in self._sweep.instructions else self._all.sweep_at(pc)
        evaluator, instructions, starts = self._evaluator, sweep.instructions, sweep.starts
        first, visited = True, self._visited
        self._current = block
        self._proved.pop(block, None)
        prover = self.prover if sweep is self._sweep else None
        if prover is not None:
            prover.begin()
        while True:
            instruction = instructions.get(pc)
            if instruction is None:
                instruction = sweep.instruction(pc)
            if not first and (pc in starts or pc in self._states):
                # After a call that does not return there may be padding, and then code that other paths lead to.
                start = address_of(block)
                self._flow(pc, state, block in self._after_call and self._after_padding(sweep, start) >= pc)
                if prover is not None and pc in self._states:
                    self._proved[block] = pc
                return
            if prover is not None and not prover.holds(pc, instruction, state):
                prover = None
            first, self._leaving = False, pc
            visited.add(pc)
            self.steps -= 1
            if self.steps < 0:
                raise _GivenUp
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
                self._flow(pc, state)
                return

    def _transfer(self, pc: int, instruction: Instruction, state: State) -> bool:
        """Follow an instruction that may not continue at the next one; return whether it may, with the state there."""
        for leaving in instruction.exits:
            after = self._evaluator.apply_until(leaving, instruction, state, pc)
            target = self._evaluator.value(leaving.target, state, pc)
            elsewhere = target[0] != NUMBER or self._image.external_call(pc, instruction.size) is not None
            if self._evaluator.holds(leaving.condition, state, after, pc) and not elsewhere:
                self._flow(target[1] & _MASK, after)
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
            return self._call(pc, instruction, state)
        if kind in (Kind.JUMP, Kind.CALL) or self._is_jump_by_table(pc, instruction, state):
            before = state.copy()
            if self._evaluator.pass_on(instruction, state, pc):
                self._jump(pc, instruction, before, state)
        elif kind is Kind.RETURN:
            self._end(state)
            self._has_return |= self._settled is None
            to = UNKNOWN if instruction.target is None else self._evaluator.value(instruction.target, state, pc)
            # Without a caller, as after a jump that cannot be taken, nothing is learned about the caller's state.
            if self._settled is None and to != OTHER:
                after = state.copy()
                self._evaluator.apply(instruction, after, pc)
                self._stack_pointers_at_return.add(after.registers[self._frame.sp])
                value = state.registers[self._frame.fp]
                self._changes_fp |= value != self._frame.entry_fp and not is_open(value[0])
            self._returns_to.add(to)
            self._replaces_return |= self._evaluator.has_replaced and (to[0] == REPLACED_BASE or is_open(to[0]))
        elif kind is Kind.TRAP:
            self._later.append((pc + instruction.size, state))
        else:
            self._returns = True
        return False

    def _is_jump_by_table(self, pc: int, instruction: Instruction, state: State) -> bool:
        """Return whether an apparent return is a jump: on s390x, any register may hold the target of a jump."""
        target = instruction.target
        if instruction.kind is not Kind.RETURN or target is None or self._all.machine.returns_through is None:
            return False
        return self._evaluator.value(target, state, pc)[0] == JUMP_ENTRY

    def _call(self, pc: int, instruction: Instruction, state: State) -> bool:
        target = self._evaluator.value(instruction.target or (), state, pc) if instruction.target else OTHER
        following = pc + instruction.size
        name = self._image.external_call(pc, instruction.size)
        address = target[1] & _MASK if target[0] == NUMBER else None
        if name is None and address == following:  # position-independent code finds its own address this way
            self._evaluator.apply(instruction, state, pc)
            self._flow(following, state)
            return False
        ra = self._all.machine.arch.ra
        if ra is not None and instruction.link not in (None, ra):
            return self._call_with_other_link(pc, address if name is None else None, instruction, state)
        called = address if name is None else None
        changed = None
        if self.effects is not None and called is not None:
            changed = self.effects.changed(called)
        if called is not None:
            self._passed.update(self._pointers(called, state))
            self._evaluator.store_in_callee(self._all.storing.get(called, ()), state)
        self._evaluator.call(state, changed)
        if called in self._all.changing_fp:
            state.registers[self._frame.fp] = UNKNOWN
        if called in self._all.moving_sp:
            self._evaluator.move_sp(self._all.moving_sp[called], state, pc)
        for pad in self._all.landing_pads(following - 1):
            self._is_local = False
            self._flow(pad.address, self._popped(state, pad.popped))
        if called is not None:
            self._called.add(called)
            # The effects of a called part are not followed.  It may leave the function, as in a retpoline.
            self._returns |= self._function.start < called < self._function.end
        is_end = is_not_returning(name) if name is not None else address in self._all.not_returning
        sweep = self._all.sweep_at(pc)
        after = self._after_padding(sweep, following)
        if not sweep.function.start <= after < sweep.function.end:
            return False  # a call at the end does not return
        if is_end:
            if self._settled is None:
                self._states_after_calls[after] = state
        else:
            self._flow(following, state, after_call=called not in self._all.coming_back)
        return False

    def _pointers(self, called: int, state: State) -> Iterator[Passed]:
        """Yield the pointers to saved registers, and to what is below these, in the registers at a call."""
        sp = self._frame.sp
        for number in self._all.machine.general:
            value = state.registers.get(number, OTHER)
            if number != sp and on_stack(value[0]):
                for base, offset in state.slots:
                    if base == value[0] and abs(offset - value[1]) <= _REACH_OF_CALLEE:
                        yield Passed(called, number, offset - value[1])

    def _after_padding(self, sweep: Sweep, address: int) -> int:
        """Return the first address without padding, from an address on."""
        padding = self._all.machine.is_padding
        while (size := sweep.instruction(address).size) and padding(sweep.bytes_at(address, size)):
            address += size
        return address

    def _call_with_other_link(self, pc: int, address: int | None, instruction: Instruction, state: State) -> bool:
        """Follow a call that leaves its return address in another register than the ABI's; return as above.

        Within the function, it is a jump over constants to which the register then points.  Otherwise, it calls a
        function with a special calling convention, such as ``__fentry__``, which changes only the registers of that
        convention.
        """
        self._evaluator.apply(instruction, state, pc)
        if address is not None and self._function.start <= address < self._function.end:
            self._flow(address, state)
            return False
        for register in self._all.machine.own_convention:
            state.registers[register] = UNKNOWN
        self._flow(pc + instruction.size, state)
        return False

    def _popped(self, state: State, size: int) -> State:
        """Return a state with so many bytes removed from the stack."""
        if not size:
            return state
        state = state.copy()
        state.registers[self._frame.sp] = plus(state.registers[self._frame.sp], size)
        return state

    def _jump(self, pc: int, instruction: Instruction, before: State, state: State) -> None:
        assert instruction.target is not None
        target = self._evaluator.value(instruction.target, before, pc)
        if target[0] != NUMBER:
            self._returns_to.add(target)
        if self._image.external_call(pc, instruction.size) is not None or target == self._frame.return_address:
            self._returns = True
        elif target[0] == NUMBER:
            self._flow(target[1] & _MASK, state)
        elif target[0] == JUMP_ENTRY:
            self._is_local = False
            self._jump_by_table(pc, self._evaluator.entries[target[1]], state)
        else:
            self._end(state)
            plt = self._image.plt(pc)
            if plt is not None and plt.first <= pc and pc + instruction.size < self._function.end:
                # Until the function is bound, the table of addresses leads back to after the jump.
                self._flow(pc + instruction.size, state)
            elif not self._frame.is_entry(state):
                self._lose(state)

    def _jump_by_table(self, pc: int, entry: Entry, state: State) -> None:
        base, bound = state.registers.get(BOUND, OTHER)
        count = bound + 1 if base == NUMBER else None
        found = self._targets(entry, count)
        if not found.addresses:
            self._lose(state)
            return
        self._table_jumps[pc] = _TableJump(entry, count, found, state.copy())
        if found.certain or self._settled is not None:
            for target in found.addresses:
                self._flow(target, state)

    def _targets(self, entry: Entry, count: int | None) -> Targets:
        found = self._read.get((entry, count))
        if found is None:
            found = self._read[entry, count] = self._read_table(entry, count)
            self.steps -= (found.end - entry.table) // entry.size // _READ_PER_STEP
            if self.steps < 0:
                raise _GivenUp
        return found

    def _read_table(self, entry: Entry, count: int | None) -> Targets:
        def is_target(address: int) -> bool:
            if address in self._sweep.instructions:
                return True
            # Parts of a function may be elsewhere, with or without a frame.  Entries that lead to other code belong to
            # the next function's table.
            other = self._all.ranges.find(address) if count is not None else None
            return other is not None and (address == other.start or other.start in self._all.unentered)

        def is_followed(address: int) -> bool:
            other = self._all.ranges.find(address)
            return address in self._sweep.instructions or (other is not None and other.start in self._all.unentered)

        found = targets(
            entry=entry,
            bound=count,
            tables=self._tables,
            image=self._image,
            is_target=is_target,
            end=self._function.end,
        )
        # Code with the row of an entry is entered by a call, if at all.
        return found._replace(addresses=list(filter(is_followed, found.addresses)))

    def _split_tables(self) -> None:
        """Begin again if a table was read beyond the start of another one that was found later."""
        begun = self._evaluator.entries.tables - self._tables
        for jump in self._table_jumps.values():
            if any(jump.entry.table < table < jump.targets.end for table in begun):
                self._tables |= begun
                raise _Restart

    def _follow_tables(self) -> None:
        """Follow jumps by tables to the code after their tables, if nothing certain leads there.

        The last comparison need not concern the table's index: the number of entries is then wrong.  Compilers know
        impossible values of an index, and omit the last of them without a comparison.
        """
        done: set[int] = set()
        while left := self._table_jumps.keys() - done:
            pc = min(left)
            done.add(pc)
            jump = self._table_jumps[pc]
            if not jump.targets.certain:
                self._follow(jump, jump.targets)
            if jump.values is not None:
                self._follow(jump, self._targets(jump.entry, None))

    def _follow(self, jump: _TableJump, found: Targets) -> None:
        for target in found.addresses:
            self._follow_guess(target, jump.state)

    def _follow_guess(self, target: int, state: State) -> None:
        """Follow code that nothing certain leads to, if nothing else has led there."""
        if target not in self._visited:
            self._current = None
            self._flow(target, state)
            self._drain()

    def _end(self, state: State) -> None:
        """Record the state in which the function is left."""
        self._returns = True
        if self._settled is None:  # guessed code does not show the stack pointer
            self._stack_pointers_at_end.add(state.registers[self._frame.sp])
            self._ends_as_entered &= self._frame.is_entry(state)
            kept = self._frame.kept(state)
            self._restored = kept if self._restored is None else self._restored & kept

    def _lose(self, state: State) -> None:
        """Record a jump to unknown targets."""
        self._returns = True
        if self._settled is None:
            self._unresolved.append(state.copy())

    def _flow(self, target: int, state: State, after_call: bool = False) -> None:
        """Follow a jump, with a state that may be changed later."""
        if self._function.start <= target < self._function.end:
            self._join(target, state, after_call)
            return
        self._is_local = False
        if target == self._function.end and self._image.plt(self._function.start) is not None:
            return  # padding after the last stub, which ends in a jump
        other = self._all.ranges.find(target)
        if other is None and self._is_detour(target):
            self._join(target, state, after_call)
            return
        if other is None or self._is_tail_call(target, other, state):
            if target not in self._all.not_returning:
                self._end(state)
            if other is not None and target == other.start and self._frame.is_entry(state):
                self._called.add(target)
            return
        self._returns = True
        if other not in self._foreign and len(self._foreign) >= _MAX_FOREIGN:
            return
        self._foreign.add(other)
        if target == other.start:
            self._continued.add(target)
        self._join(target, state, after_call)

    def _is_detour(self, target: int) -> bool:
        """Return whether code that no table describes leads back to the function that jumped to it.

        It has that function's frame.  Linux has such code in ``.altinstr_aux``.
        """
        if not self._image.is_code(target) or self._image.plt(target) is not None:
            return False
        sweep = self._all.sweep_at(target)
        return any(self._is_part(destination) for destination in sweep.leads_to(target))

    def _is_part(self, address: int) -> bool:
        """Return whether an address is in the code that is followed as one function, but not at its start."""
        other = self._all.ranges.find(address)
        return (
            other is not None
            and address != self._function.start
            and (other == self._function or other in self._foreign)
        )

    def _is_tail_call(self, target: int, other: CodeRange, state: State) -> bool:
        """Return whether a jump to another function enters it like a call, as far as is known."""
        if target != other.start:
            return self._image.plt(target) is not None and self._frame.is_entry(state)
        if target in self._all.unentered:
            return self._frame.is_entry(state)
        # Clang makes conditional jumps that cannot be taken lead to after the function.
        return self._settled is not None or target == self._function.end or self._frame.may_be_entry(state)

    def _join(self, target: int, state: State, after_call: bool = False) -> None:
        if self._settled is not None and target in self._settled:
            return
        block = target if self.ways is None else self._way(self.ways, target, state)
        known = self._states.get(block)
        if self._current is not None:
            self._sources.setdefault(block, set()).add(Source(self._current, self._leaving))
        if known is None:
            if after_call and target in self._dead:
                return
            self._states[block] = state.copy()
            if block == target and after_call:
                self._after_call.add(target)
            elif block == target and target in self._visited:
                self._split(target)
        else:
            self._note_meeting(known, state)
            if self._conflicts(known, state):
                # Compilers never let paths with different stack pointers meet: the call does not return.
                if after_call:
                    self._presumes = True
                    return
                if target in self._after_call and target not in self._dead:
                    self._dead.add(target)
                    raise _Restart
            if not after_call:
                self._after_call.discard(target)
            if not self._frame.join(known, state, target):
                return
        if self._settled is not None:
            self._guessed.add(block)
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
            raise _GivenUp
        return target | number << _ADDRESS_BITS

    def _note_meeting(self, known: State, state: State) -> None:
        left, right = known.registers[self._frame.sp], state.registers[self._frame.sp]
        self._meets |= left != right and left[0] == right[0]

    def _split(self, target: int) -> None:
        """Run a block again after a jump into its middle was found: it now ends there."""
        starts = sorted(self._states)
        self.steps -= len(starts) // _SORTED_PER_STEP
        before = starts[max(bisect_left(starts, target) - 1, 0)]
        while before in self._states:
            self._wait(before)
            before += 1 << _ADDRESS_BITS

    def _conflicts(self, known: State, state: State) -> bool:
        sp = self._frame.sp
        left, right = known.registers[sp], state.registers[sp]
        return left != right and left[0] == right[0] == CFA
