"""The state of the unwinder for one process, from one frame to the next."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import gdb

from gdb_plugin.frames.frame_history import FrameHistory
from gdb_plugin.frames.outer_frames import OuterFrames
from gdb_plugin.frames.plan_table import PlanTable
from gdb_plugin.frames.plans import LEFT, Plan
from gdb_plugin.frames.popping import Popping
from gdb_plugin.frames.returns import is_signal_frame, returns_to
from gdb_plugin.process.process import Process
from sframe_unwind.address import lookup_address
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind.step import needs_registers
from sframe_unwind.unwind_rule import UnwindRule


class Unwinding:
    """The plans for the frames of one process, and the frames that GDB asked for last."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.plans = PlanTable(process)
        self.history = FrameHistory(partial(is_signal_frame, process), partial(returns_to, process))
        self.popping = Popping()
        self._begin_outer_frames()
        process.listed.listeners.append(self)

    def forget(self) -> None:
        """Make all plans anew, because the modules have changed."""
        self.plans.forget()
        self._begin_outer_frames()

    def forget_outside(self) -> None:
        """Make the plans for addresses in no module of GDB's list anew."""
        self.plans.forget_outside()
        self._begin_outer_frames()

    def look_again(self) -> None:
        """Look for code that was added or removed: the process has run."""
        self.plans.look_again()
        self.process.look_again()

    def plan(self, frame: gdb.PendingFrame, pc: int, settings: Settings) -> Plan:
        """Return the treatment of a pending frame."""
        plans = self.plans
        if settings is not plans.settings:
            # `sframe compare` reads both stacks with its own settings; the user's settings apply again after it.
            plans.choose(settings)
            self._begin_outer_frames()
        return plans.known.get(pc) or plans.make(frame, pc)

    def _begin_outer_frames(self) -> None:
        """Forget the frames that are known in advance, because the plans have changed."""
        self.outer_frames = OuterFrames(self.process.arch, self.process.read_word, self._native_rule)

    def _native_rule(self, pc: int) -> UnwindRule | None:
        """Return the rule of the CFI for frames that are left to GDB; see :class:`OuterFrames`.

        Code without SFrame has no result, since decoding its CFI takes time, and nothing else needs it.
        """
        if self.plans.known.get(pc) is not LEFT:
            return None
        modules, address = self.process.modules, lookup_address(pc, False)
        if not isinstance(modules.results[address], Found) or is_signal_frame(self.process, pc):
            return None
        rule = modules.cfi_rule(address)
        if rule is None or rule.cfa is None or rule.ra_signed or needs_registers(rule, self.process.arch):
            return None
        return rule


class Inferiors(Protocol):
    """Finds the state for the selected inferior."""

    def current(self, frame: Any) -> Unwinding | None:
        """Return the state; ``None``: SFrame has no ABI for the inferior.

        :param frame: any frame of the inferior, pending or not.
        """

    def is_gone(self) -> bool:
        """Return whether the inferior that was current is gone: the connection broke when it was read."""

    def is_running(self) -> bool:
        """Return whether the selected thread runs, from the user's view: internal stops of GDB do not count."""
