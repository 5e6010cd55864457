"""Finds the functions of a file: those that are known, and those that known code calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Callable

from sframe_unwind.address import Range, RangeMap
from sframe_unwind.code.decode.instruction import PC_RELATIVE, Kind
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.interpret.run import Run, address_of
from sframe_unwind.code.interpret.state import State
from sframe_unwind.code.interpret.values import NUMBER
from sframe_unwind.code.interpret.walk import walk

_MOST_FOUND = 1 << 20
"""Maximum number of functions that are found by following calls."""


def functions_of(
    image: CodeImage,
    machine: Machine,
    lifter: Lifter,
    known: Iterable[Range],
    starts: Iterable[int] | None = None,
    only_called: Collection[int] = (),
) -> CodeRanges:
    """Return the functions of a file.

    A start is an address that is called, exported or in a pointer, or at which the program begins.  It counts only if
    it is in no known function: the address of code in the middle of a known function does not begin another one.  A
    function that is found in this way ends with the last instruction to which its code leads.

    :param known: start and end address (exclusive) of the known functions.
    :param starts: further addresses at which functions are known to start; where they end is not known.  An address
        that the code computes then begins no other function: assembly has data among its code.  ``None``: it may.
    :param only_called: addresses at which functions start only if they are called.
    """
    known = [one for one in known if image.is_code(one[0])]
    known += [(plt.start, plt.end) for plt in image.plts]
    first = [*(starts or ()), *image.reachable, *((image.entry_point,) if image.entry_point is not None else ())]
    finder = Finder(image, machine, lifter, known, takes_computed=starts is None, only_called=only_called)
    for start, end in known:
        finder.follow(CodeRange(start, end))
    for start in first:
        if start not in only_called:
            finder.add(start)
    return CodeRanges([*known, *finder.found()])


class Finder:
    """Follows calls to code that belongs to no known function.

    :param known: the known functions.
    :param before_next: returns the code from a start to the address at which another function may begin; ``None``: code
        that belongs to no known function reaches to the next start that was found.
    :param takes_computed: an address that the code computes may begin a function.
    :param only_called: addresses at which functions start only if they are called.
    """

    def __init__(
        self,
        image: CodeImage,
        machine: Machine,
        lifter: Lifter,
        known: Iterable[Range],
        before_next: Callable[[int], CodeRange] | None = None,
        takes_computed: bool = True,
        only_called: Collection[int] = (),
    ) -> None:
        self._image = image
        self._machine = machine
        self._takes_computed = takes_computed
        self._only_called = only_called
        self._before_next = before_next
        self._known = RangeMap((start, end, None) for start, end in known)
        self._waiting: list[int] = []
        self._found: dict[int, int] = {}
        """The end of each function that was found, by its start."""
        self._taken: set[int] = set()
        """Addresses of code that the code computes."""
        self.followed = 0
        """Number of instructions that were followed."""
        self._interpreter = Interpreter(image, machine, lifter, CodeRanges([]), lambda _: ())

    def add(self, start: int) -> None:
        """Add a start, unless it lies in a known function, or no instruction can be there."""
        is_aligned = start % self._machine.arch.instruction_unit == 0
        is_new = is_aligned and start not in self._found and len(self._found) < _MOST_FOUND
        if is_new and self._image.is_code(start) and not self._known.contains(start):
            self._found[start] = start
            self._waiting.append(start)

    def follow(self, function: CodeRange) -> Run:
        """Interpret a function; add its callees and the code whose address it computes, and return the run."""
        self._interpreter.ranges = CodeRanges([function])
        run = self._interpreter.run(function, {function.start: self._interpreter.frame.entry()})
        instructions = self._interpreter.sweep_at(function.start).instructions
        self.followed += len(instructions)
        ends = [end for block in run.states if (end := self._end_of(run, block)) is not None]
        # Beyond an instruction that is not known, the code may belong to the function: no address in it is a start.
        stops = any(pc in instructions and instructions[pc].kind is Kind.STOP for pc, _ in ends)
        own = range(*function) if stops else range(0)
        for target in run.called:
            if target not in own:
                self.add(target)
        for pc, state in ends:
            self._add_tail_call(function, pc, state)
        if self._takes_computed:
            computed = {value for _, state in ends for base, value in state.registers.values() if base == NUMBER}
            # On AMD64, a system call writes the address after it to rcx.
            computed -= {pc + found.size for pc, found in instructions.items() if found.kind is Kind.SYSTEM}
            self._taken.update(one for one in computed if one > 0 and one not in own and self._image.is_code(one))
        return run

    def _end_of(self, run: Run, block: int) -> tuple[int, State] | None:
        """Return the address of the last instruction of a block, and the state there."""
        return next(iter(deque(walk(self._interpreter, run, block), maxlen=1)), None)

    def _add_tail_call(self, function: CodeRange, pc: int, state: State) -> None:
        """Add the target of an instruction that jumps out of a function with the frame of its entry."""
        found = self._interpreter.sweep_at(function.start).instruction(pc)
        if found.kind is Kind.JUMP and found.target is not None and found.target[0] == PC_RELATIVE:
            target = pc + found.target[1]
            if not function.start <= target < function.end and self._interpreter.frame.is_entry(state):
                self.add(target)

    def found(self) -> list[Range]:
        """Return the extents of the functions that were found."""
        while self.follow_next() is not None:
            pass
        for start in sorted(self._found):  # when some were found, the start of the next one was not known yet
            self._follow_found(start)
        return sorted(self._found.items())

    def follow_next(self) -> Range | None:
        """Follow the next function that was found, and return its extent; ``None``: no other function is found.

        Code whose address is computed is a function only if nothing else leads there: it may also be a label.
        """
        if not self._waiting:
            extents = RangeMap((start, end, None) for start, end in self._found.items())
            for address in sorted(self._taken):
                if address not in self._only_called and not extents.contains(address):
                    self.add(address)
            self._taken.clear()
        return self._follow_found(self._waiting.pop()) if self._waiting else None

    def _follow_found(self, start: int) -> Range:
        function = self._before_others(start)
        end = self._found[start] = self._end(function, self.follow(function))
        return start, end

    def _before_others(self, start: int) -> CodeRange:
        """Return the code from a start to the next function or the end of its section."""
        section = self._image.section(start)
        end = start if section is None else section.end
        others = [other for other in self._found if start < other < end]
        others += [other for other, _, _ in self._known.overlapping(start, end) if other > start]
        if self._before_next is not None:
            others.append(self._before_next(start).end)
        return CodeRange(start, min((end, *others)))

    def _end(self, function: CodeRange, run: Run) -> int:
        """Return the address after the last instruction that a run reaches in a function.

        After a trap, another function may begin: where other functions are not all found, it does not count.
        """
        sweep, last = self._interpreter.sweep_at(function.start), function.start
        for block in run.states if self._before_next is None else run.states.keys() - run.guessed:
            pc = address_of(block)
            while function.start <= pc < function.end:
                instruction = sweep.instruction(pc)
                pc += instruction.size
                last = max(last, pc)
                if instruction.kind not in (Kind.NEXT, Kind.SYSTEM) or not instruction.size:
                    break
        return last
