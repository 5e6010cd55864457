"""Interprets functions abstractly, up to a fixpoint: the state before each reachable instruction."""

from __future__ import annotations

from collections.abc import Iterable

from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.exception_tables import LandingPads
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.interpret.attempt import Attempt
from sframe_unwind.code.interpret.blocks import Budget, GivenUp, Restart
from sframe_unwind.code.interpret.effects import Effects
from sframe_unwind.code.interpret.flow import Found, Settings
from sframe_unwind.code.interpret.program import Program
from sframe_unwind.code.interpret.run import Prover, Run
from sframe_unwind.code.interpret.state import State

_MAX_RESTARTS = 16
_STEPS_PER_INSTRUCTION, _MIN_STEPS, _MAX_STEPS = 40, 4000, 4_000_000
"""Limits of executed instructions, after which a function is given up."""


class Interpreter(Program):
    """Interprets the functions of one file.

    :param max_steps: maximum number of executed instructions, after which a function is given up.
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
        super().__init__(
            image=image, machine=machine, lifter=lifter, ranges=ranges, landing_pads=landing_pads, tracked=tracked
        )
        self.effects = Effects(image, machine, ranges, self.sweeps, self._restored)
        self._lifter = lifter
        self._tracking: Interpreter | None = None
        self._max_steps = max_steps

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
            self._tracking.sweeps, self._tracking.inherited = self.sweeps, self.inherited
            self._tracking.not_returning = self.not_returning  # what is learned later, too
            self._tracking.moving_sp, self._tracking.coming_back = self.moving_sp, self.coming_back
        self._tracking.unentered, self._tracking.storing = self.unentered, self.storing
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
        self.evaluator.entries.tables.clear()
        self.evaluator.written.clear()
        self.evaluator.has_read = self.evaluator.rests_on_call = self.evaluator.has_replaced = False
        self.evaluator.exposes_frame, self.evaluator.compares_constants = False, apart
        count = len(self.sweeps.sweep(function).instructions)
        budget = Budget(max(_MIN_STEPS, min(_STEPS_PER_INSTRUCTION * count, self._max_steps)))
        found, settings = Found(set(), set()), Settings(self.effects if through_calls else None, apart, prover)
        for _ in range(_MAX_RESTARTS):
            attempt = Attempt(self, function, found, budget, settings)
            try:
                return attempt.run(entries)
            except Restart:
                continue
            except GivenUp:
                break
        return attempt.result(complete=False)
