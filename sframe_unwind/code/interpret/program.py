"""The facts about one file that are collected while its functions are interpreted."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.exception_tables import LandingPads
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges, Starts
from sframe_unwind.code.interpret.evaluation import Evaluator
from sframe_unwind.code.interpret.inherited import Inherited
from sframe_unwind.code.interpret.state import Frame
from sframe_unwind.code.interpret.stores import Written
from sframe_unwind.code.interpret.sweep import Sweep, Sweeps

_DETOUR = 256
"""Maximum size of code that belongs to no function and leads back to the function that jumps there, in bytes."""


class Program:
    """The code of a file, and the facts about its functions that were found so far.

    :param ranges: ranges of all functions.
    :param landing_pads: places where an exception that passes through a call may be caught, by the address before the
        call's return address.
    :param tracked: registers that are followed to the slots in which they are saved, besides the frame pointer.
    """

    def __init__(
        self,
        image: CodeImage,
        machine: Machine,
        lifter: Lifter,
        ranges: CodeRanges,
        landing_pads: LandingPads,
        tracked: Iterable[int] = (),
    ) -> None:
        self.image = image
        self.machine = machine
        self.frame = Frame(machine, tracked)
        self.ranges = ranges
        self.landing_pads = landing_pads
        self.evaluator = Evaluator(machine, self.frame, image.read_constant)
        self.sweeps = Sweeps(image, lifter)
        self._last: Sweep | None = None
        """The function that was asked for last: most addresses are in the same one as the address before."""
        self.not_returning = set(image.not_returning)
        self.inherited = Inherited(image, machine, ranges, self.sweeps, self.not_returning)
        self.changing_fp: set[int] = set()
        """Starts of functions that return with another frame pointer than at their entry."""
        self.moving_sp: dict[int, int | None] = {}
        """By the start of each function that does not return with the stack pointer of the ABI, how many bytes higher
        it is; ``None``: it is so only sometimes, or the number varies."""
        self.coming_back = Starts(ranges)
        """Starts of functions that certainly return, on some path."""
        self.storing: dict[int, frozenset[Written]] = {}
        """Functions that store in the frames of their callers, and these stores."""
        self.unentered: frozenset[int] = frozenset()
        """Starts of functions that are entered with another function's frame according to their rows, as far as
        known."""

    def sweep_at(self, pc: int) -> Sweep:
        """Return the instructions of the function that contains an address; without a function, those that follow."""
        last = self._last
        if last is not None and last.function.start <= pc < last.function.end:
            return last
        function = self.ranges.find(pc)
        if function is None:
            return self.sweeps.sweep(self.ranges.before_next(pc, _DETOUR))
        self._last = found = self.sweeps.sweep(function)
        return found

    def within_another(self, address: int, function: CodeRange) -> CodeRange | None:
        """Return the function that contains an address after its start; ``None``: none, or the given one."""
        found = self.ranges.find(address)
        if found is None or found == function or found.start == address or self.image.plt(address) is not None:
            return None
        return found
