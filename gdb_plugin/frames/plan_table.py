"""Keeps the plans for the frames of one process, by settings and pc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gdb

from gdb_plugin.frames.native_cfi import NativeCfi
from gdb_plugin.frames.plans import Plan, Planner
from gdb_plugin.process.functions import symbol_at
from gdb_plugin.process.memory import read
from gdb_plugin.process.process import Process
from gdb_plugin.version import NATIVE_FAILS
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import PlaceKind
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.unwind.code_match import AskedFrame
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind.modules_by_code import ModulesByCode
from sframe_unwind.unwind.precedence import JudgeRule, Verdict
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule

if TYPE_CHECKING:
    from sframe_unwind.debugger.code_registers import RegisterProver
    from sframe_unwind.kernel.entry_code import EntryPlace

_BY_MEMORY = (PlaceKind.EXCEPTION, PlaceKind.STACK_SWITCH)
"""The kinds of entry code whose CFI is incomplete: it cannot tell whether an exception interrupted user space, nor
where the previous stack continues after a function in C has switched stacks."""
_LIMIT = 200_000
"""Maximum number of plans that are kept, so that hours of stepping through a program do not fill the memory."""
_JUDGED_SIZE, _MOST_JUDGED = 1 << 14, 32
"""Limits for the interpretation of code that decides between SFrame and CFI, because GDB waits for it: the size of a
function in bytes (the largest one takes 0.1 s), and the number of addresses."""


class PlanTable:
    """The plans for the frames of one process.  They depend on its modules and on the settings."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.settings = Settings()
        self._prover: RegisterProver | None = None
        self.forget()

    def forget(self) -> None:
        """Make all plans anew."""
        self.known: dict[int, Plan] = {}
        """The plans of the current settings, by pc."""
        self._by_settings: dict[Settings, dict[int, Plan]] = {self.settings: self.known}
        self._planner: Planner | None = None
        self._rule_judge: JudgeRule | None = None

    def forget_outside(self) -> None:
        """Make the plans for addresses in no module of GDB's list anew, and decide anew which CFI GDB has."""
        self._planner = None
        module_at = self._process.listed.spans.get
        for plans in self._by_settings.values():
            for pc in [pc for pc in plans if module_at(pc) is None or module_at(pc - 1) is None]:
                del plans[pc]

    def choose(self, settings: Settings) -> None:
        """Use the plans of other settings."""
        self.settings = settings
        self.known = self._by_settings.setdefault(settings, {})

    def look_again(self) -> None:
        """Give the machine code of functions new time: the process has run."""
        if self._prover is not None:
            self._prover.renew()

    def make(self, frame: gdb.PendingFrame, pc: int) -> Plan:
        """Make the plan for a pending frame, and keep it."""
        process = self._process
        process.want_kernel(pc)
        if len(self.known) >= _LIMIT:
            self.known.clear()
        process.cover(pc)
        if isinstance(process.modules, ModulesByCode):
            self._learn(process.modules, frame, pc)
        settings, planner = self.settings, self.planner(frame)
        if process.kernel is not None and not settings.strict and not _is_readable(pc):
            # The code at pc was freed, as a kernel does with its initial code.  On AArch64, GDB's own unwinder then
            # does not use the CFI, so the frame must not be left to it.
            settings = settings._replace(strict=True)
        plan = planner.plan(settings, pc)
        if process.kernel is not None:
            plan = self._in_entry_code(plan, pc)
        # Another frame with this pc may show where its function begins, or that pc is the next instruction in it.
        if not plan.untold and (self._prover is None or not self._prover.is_exhausted):
            self.known[pc] = plan
        return plan

    def _learn(self, modules: ModulesByCode, frame: gdb.PendingFrame, pc: int) -> None:
        """Look for the start of a frame's function by the frame itself, where nothing else tells.

        The function is the same whether pc is the next instruction or a return address, and later frames may differ.
        """
        registers = self._process.registers(frame)
        sp, fp = (int(frame.read_register(one)) & ADDRESS_MASK for one in (registers.sp, registers.fp))
        modules.learn(AskedFrame(pc, sp, fp, True, None if frame.level() else registers.reader(frame)))
        modules.learn(AskedFrame(pc, sp, fp, False, None))

    def _in_entry_code(self, plan: Plan, pc: int) -> Plan:
        """Return a plan with the places of the kernel's entry code at a pc."""
        places = self._process.entry_places
        place = places.get(pc)
        if place is not None and place.is_outermost and not _is_readable(pc):
            plan = plan._replace(outermost=place.start)
        if place is not None and self._is_by_memory(place) and place.kind is PlaceKind.EXCEPTION:
            plan = plan._replace(entered=place)
        place = places.get(pc - 1)
        if place is not None and self._is_by_memory(place):
            plan = plan._replace(place=place)
        return plan

    def _is_by_memory(self, place: EntryPlace) -> bool:
        """Return whether the CFI of a place is incomplete or wrong; code in C has its own CFI."""
        kernel = self._process.kernel
        if kernel is None or kernel.facts.user_mode is None:
            return False
        return place.kind in _BY_MEMORY or place.is_in_c

    def planner(self, frame: Any) -> Planner:
        """Return the object that makes plans for the present modules.

        :param frame: a (pending) frame; its target tells whether GDB can strip signed return addresses.
        """
        process = self._process
        strips = not process.arch.pac_mask or process.registers(frame).pac_mask(frame) is not None
        if self._planner is None or self._planner.strips != strips:
            self._planner = Planner(
                modules=process.modules,
                native=NativeCfi(process.arch, process.modules, process.listed.of_gdb, process.report_once),
                find_registers=self._find_registers,
                judge=self._judge,
                able=process.arch.name not in NATIVE_FAILS,
                strips=strips,
            )
        return self._planner

    def _judge(self, found: Found, address: int, rule: UnwindRule) -> Verdict:
        """Judge a rule by the machine code, see :data:`sframe_unwind.unwind.precedence.JudgeRule`."""
        if self._rule_judge is None:
            # Imported for the first row that differs from the CFI, not at each start of GDB.
            from sframe_unwind.debugger.code_judge import ProcessCode, rule_judge

            code = ProcessCode(self._process.modules, read, symbol_at)
            self._rule_judge = rule_judge(code, _JUDGED_SIZE, _MOST_JUDGED)
        return self._rule_judge(found, address, rule)

    def _find_registers(self, found: Found, address: int) -> tuple[tuple[int, RegisterRule], ...] | None:
        # Imported for the first frame without CFI, not at each start of GDB.
        from sframe_unwind.debugger.code_judge import ProcessCode
        from sframe_unwind.debugger.code_registers import RegisterProver

        if self._prover is None:
            self._prover = RegisterProver()
        return self._prover.others(ProcessCode(self._process.modules, read, symbol_at), found, address)


def _is_readable(pc: int) -> bool:
    try:
        return bool(read(pc, 1))
    except MemoryReadError:
        return False
