"""One inferior in the core's terms: its architecture, registers, memory and modules."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import gdb

from gdb_plugin.frames.frame_history import FrameHistory
from gdb_plugin.frames.native_cfi import NativeCfi
from gdb_plugin.frames.outer_frames import OuterFrames
from gdb_plugin.frames.plans import LEFT, Plan, Planner
from gdb_plugin.frames.popping import Popping
from gdb_plugin.interface.texts import path_of
from gdb_plugin.process.functions import symbol_at
from gdb_plugin.process.memory import read
from gdb_plugin.process.modules import discover_modules, find_module, list_modules
from gdb_plugin.process.registers import Registers
from gdb_plugin.process.symbols import Symbols
from gdb_plugin.version import NATIVE_FAILS
from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE, RangeMap, lookup_address
from sframe_unwind.arch import Arch, PlaceKind
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.memory import WordReader
from sframe_unwind.runtime_code.opening import open_run_time_code
from sframe_unwind.unwind.modules import Found, Generate, Module, Modules
from sframe_unwind.unwind.precedence import JudgeRule, Verdict
from sframe_unwind.unwind.step import needs_registers
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule

if TYPE_CHECKING:
    from sframe_unwind.debugger.code_registers import RegisterProver
    from sframe_unwind.debugger.kernel_modules import ModulePlaces
    from sframe_unwind.kernel.entry_code import EntryPlace
    from sframe_unwind.kernel.linux import Kernel
    from sframe_unwind.runtime_code.source import RunTimeCode

_BY_MEMORY = (PlaceKind.EXCEPTION, PlaceKind.STACK_SWITCH)
"""Entry code whose CFI is incomplete: it does not tell whether an exception interrupted user space, and where a stack
continues to which a function in C has switched."""
_LIMIT = 200_000
"""Maximum number of plans to keep; stepping through a program for hours must not fill the memory."""
_JUDGED_SIZE, _MOST_JUDGED = 1 << 14, 32
"""Maximum size in bytes of a function that is interpreted to decide between SFrame and CFI, which takes 0.1 s, and
maximum number of addresses: GDB waits."""
_NO_PLACES: RangeMap[EntryPlace] = RangeMap(())


class Process:
    """The data that unwinding needs of one inferior.

    Listing all modules takes GDB long if there are hundreds, so the list is only made anew for an address that belongs
    to no known module.

    :param symbols: finds the code that the process has registered at run time.
    :param report: shows one line to the user.
    :param may_execute: whether a GDB command can be run now.
    :param run_time_changed: called when the registered code has changed.
    :param generate: makes SFrame for modules that have none.
    """

    def __init__(
        self,
        architecture: gdb.Architecture,
        arch: Arch,
        symbols: Symbols,
        report: Callable[[str], None],
        may_execute: Callable[[], bool],
        run_time_changed: Callable[[Process], None],
        generate: Generate | None,
    ) -> None:
        self.arch = arch
        self.read_word = WordReader(read, arch.byteorder)
        """Reads for one frame: before another frame is read, the kept chunks are dropped."""
        self.run_time: RunTimeCode | None = None
        self.modules = Modules(arch, ())
        self.history = FrameHistory(self._is_signal_frame, self._returns_to)
        self.popping = Popping()
        self._symbols = symbols
        self._generate = generate
        self._report = report
        self._reported: set[str] = set()
        self._may_execute = may_execute
        self._listed: dict[object, Module] = {}
        self._gdb_modules: set[Module] = set()
        self._spans: RangeMap[Module] = RangeMap(())
        self._all_listed = self._run_time_looked_for = False
        self._planner: Planner | None = None
        self._rule_judge: JudgeRule | None = None
        self._registers = {architecture: Registers(architecture, arch)}
        self._settings = Settings()
        self._forget_plans()
        self.is_kernel_wanted = False
        """A frame is in the kernel's half of the address space, and its kernel has not been looked for."""
        self.kernel: Kernel | None = None
        self.no_kernel = ""
        """Why the inferior is not a kernel."""
        self._places: ModulePlaces | None = None
        self._prover: RegisterProver | None = None
        self._run_time_changed = run_time_changed
        self._look_for_run_time()

    def files_added(self, objfiles: Sequence[gdb.Objfile]) -> None:
        """Take account of added files."""
        self._all_listed = False
        if any(is_run_time(path_of(objfile)) for objfile in objfiles):
            self._look_for_run_time()
        completed = {path_of(objfile.owner) for objfile in objfiles if objfile.owner is not None}
        if any(module.name in completed for module in self._listed.values()):
            # A separate debug file that was added after its module can have CFI for it.
            self._listed = {key: module for key, module in self._listed.items() if module.name not in completed}
            self._renew()
        self._forget_outside()

    def files_removed(self, paths: Container[str]) -> None:
        """Take account of files that GDB has freed, except for the program itself."""
        removed = {module for module in self._listed.values() if module.name in paths}
        self._listed = {key: module for key, module in self._listed.items() if module not in removed}
        self._all_listed = False  # another copy of a file may be loaded
        self._gdb_modules -= removed
        self._spans.remove(removed)
        self.modules.remove(removed)
        self._forget_outside()

    def _forget_outside(self) -> None:
        """Make the plans for addresses in no module of the list anew, and decide anew which CFI GDB has."""
        self._planner = None
        for plans in self._plans_by_settings.values():
            for pc in [pc for pc in plans if self._spans.get(pc) is None or self._spans.get(pc - 1) is None]:
                del plans[pc]
        self._begin_outer_frames()

    def complete(self) -> None:
        """List all modules and find all run-time code, unless that has been done."""
        if not self._all_listed:
            self._list()
        if not self._run_time_looked_for:
            self._look_for_run_time()

    def _list(self) -> None:
        self._all_listed = may_execute = self._may_execute()
        known = self._listed
        self._listed = {
            (module.name, module.ranges): module for module in list_modules(self.arch, may_execute, self._places)
        }
        for key in self._listed.keys() & known.keys():
            self._listed[key] = known[key]  # keeps the data that it has read
        self._renew()

    def _find(self, pc: int) -> bool:
        """Add the one module at a pc to a list that lacks it; return whether there is one."""
        module = find_module(self.arch, self._may_execute(), pc) if self._listed else None
        if module is None:
            return False
        self._listed[module.name, module.ranges] = module
        self._gdb_modules.add(module)
        self._spans.add((*span, module) for span in module.ranges)
        self.modules.add([module])
        self._forget_outside()
        return True

    def _look_for_run_time(self) -> None:
        self._run_time_looked_for = True
        before, self.run_time = (
            self.run_time,
            self.run_time or open_run_time_code(self.arch, read, self._symbols.addresses, self._report_once),
        )
        if self.run_time is not before:
            self._renew()
            self._run_time_changed(self)

    def _renew(self) -> None:
        self._gdb_modules = set(self._listed.values())
        self._spans = RangeMap((*span, module) for module in self._listed.values() for span in module.ranges)
        self.modules = Modules(
            arch=self.arch,
            modules=self._listed.values(),
            report=self._report_once,
            discover=self._discover,
            run_time=self.run_time,
            generate=self._generate,
            read=read,
        )
        self._forget_plans()

    def _forget_plans(self) -> None:
        """Make all plans anew: they depend on the modules."""
        self._plans: dict[int, Plan] = {}
        """The plans of the current settings, by pc."""
        self._plans_by_settings: dict[Settings, dict[int, Plan]] = {self._settings: self._plans}
        self._planner = self._rule_judge = None
        self._begin_outer_frames()

    def _discover(self) -> list[Module]:
        return discover_modules(self.arch, self._may_execute())

    def _report_once(self, line: str) -> None:
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)

    def _cover(self, pc: int) -> None:
        """Update the list of modules if a pc may belong to a module that is not listed yet."""
        if not self._all_listed and self._spans.get(pc) is None and not self._find(pc):
            self._list()
        if not self._run_time_looked_for and not any(
            isinstance(self.modules.results[address], Found) or self.modules.has_cfi(address)
            for address in (pc, pc - 1)
        ):
            self._look_for_run_time()

    def look_for_kernel(self) -> None:
        """Look for the Linux kernel that the inferior is; GDB commands can be run."""
        from gdb_plugin.process.kernel import kernel_of, tell_gdb
        from sframe_unwind.debugger.kernel_modules import ModulePlaces

        self.is_kernel_wanted = False
        self._forget_plans()
        try:
            self.kernel = kernel_of(self.arch, self.modules)
            tell_gdb(self.kernel)
            self._places = ModulePlaces(self.kernel, self._report_once)
            self._listed = {}  # GDB knows only some of the addresses of the kernel's modules
            self._list()
        except (SFrameError, gdb.error) as error:
            self.no_kernel = str(error)

    def known_kernel(self) -> Kernel:
        """Return the Linux kernel that the inferior is; GDB commands can be run.

        :raises KernelError: it is not one.
        """
        from sframe_unwind.kernel.types import KernelError

        if self.kernel is None and not self.no_kernel:
            self.look_for_kernel()
        if self.kernel is None:
            raise KernelError(self.no_kernel)
        return self.kernel

    @property
    def entry_places(self) -> RangeMap[EntryPlace]:
        """The places of the kernel's entry code; none: the inferior is not a kernel."""
        return _NO_PLACES if self.kernel is None else self.kernel.places

    def registers(self, frame: Any) -> Registers:
        """Return the registers of a (pending) frame.

        Frames of one process can differ in their architecture: with SVE on AArch64, the frame of a signal handler can
        show that the vectors had another length.
        """
        architecture = frame.architecture()
        known = self._registers.get(architecture)
        if known is None:
            known = self._registers[architecture] = Registers(architecture, self.arch)
        return known

    def plan(self, frame: gdb.PendingFrame, pc: int, settings: Settings) -> Plan:
        """Return the treatment of a pending frame."""
        if settings is not self._settings:
            # `sframe compare` reads both stacks with its own settings; the user's settings apply again after it.
            self._settings = settings
            self._plans = self._plans_by_settings.setdefault(settings, {})
            self._begin_outer_frames()
        plan = self._plans.get(pc)
        if plan is None:
            if self.kernel is None and not self.no_kernel and self.arch.may_be_kernel(pc):
                self.is_kernel_wanted = True
            if len(self._plans) >= _LIMIT:
                self._plans.clear()
            self._cover(pc)
            planner = self.planner(frame)
            if self.kernel is not None and not settings.strict and not _is_readable(pc):
                # On AArch64, GDB's own unwinder then unwinds without CFI.  A kernel frees its initial code.
                settings = settings._replace(strict=True)
            plan = planner.plan(settings, pc)
            place = self.entry_places.get(pc)
            if place is not None and place.is_outermost and not _is_readable(pc):
                plan = plan._replace(outermost=place.start)
            if place is not None and self._is_by_memory(place) and place.kind is PlaceKind.EXCEPTION:
                plan = plan._replace(entered=place)
            place = self.entry_places.get(pc - 1)
            if place is not None and self._is_by_memory(place):
                plan = plan._replace(place=place)
            if self._prover is None or not self._prover.is_exhausted:
                self._plans[pc] = plan
        return plan

    def _begin_outer_frames(self) -> None:
        """Know no frame in advance: the plans are other ones now."""
        self.outer_frames = OuterFrames(self.arch, self.read_word, self._native_rule)

    def _native_rule(self, pc: int) -> UnwindRule | None:
        """Return the rule of the CFI for frames that are left to GDB; see :class:`OuterFrames`.

        ``None`` also where there is no SFrame: the CFI is not needed otherwise, and decoding it takes time.
        """
        if self._plans.get(pc) is not LEFT:
            return None
        address = lookup_address(pc, False)
        if not isinstance(self.modules.results[address], Found) or self._is_signal_frame(pc):
            return None
        rule = self.modules.cfi_rule(address)
        if rule is None or rule.cfa is None or rule.ra_signed or needs_registers(rule, self.arch):
            return None
        return rule

    def _is_by_memory(self, place: EntryPlace) -> bool:
        """Return whether the CFI of a place is incomplete or wrong; code in C has its own CFI."""
        if self.kernel is None or self.kernel.facts.user_mode is None:
            return False
        return place.kind in _BY_MEMORY or place.is_in_c

    def planner(self, frame: Any) -> Planner:
        """Return the object that makes plans for the present modules.

        :param frame: a (pending) frame; its target tells whether GDB can strip signed return addresses.
        """
        strips = not self.arch.pac_mask or self.registers(frame).pac_mask(frame) is not None
        if self._planner is None or self._planner.strips != strips:
            native = NativeCfi(self.arch, self.modules, self._gdb_modules)
            able = self.arch.name not in NATIVE_FAILS
            self._planner = Planner(
                modules=self.modules,
                native=native,
                find_registers=self._find_registers,
                judge=self._judge,
                able=able,
                strips=strips,
            )
        return self._planner

    def _judge(self, found: Found, address: int, rule: UnwindRule) -> Verdict:
        """Judge a rule by the machine code, see :data:`sframe_unwind.unwind.precedence.JudgeRule`."""
        if self._rule_judge is None:
            # Imported for the first row that differs from the CFI, not at each start of GDB.
            from sframe_unwind.debugger.code_judge import ProcessCode, rule_judge

            self._rule_judge = rule_judge(ProcessCode(self.modules, read, symbol_at), _JUDGED_SIZE, _MOST_JUDGED)
        return self._rule_judge(found, address, rule)

    def _find_registers(self, found: Found, address: int) -> tuple[tuple[int, RegisterRule], ...] | None:
        # Imported for the first frame without CFI, not at each start of GDB.
        from sframe_unwind.debugger.code_judge import ProcessCode
        from sframe_unwind.debugger.code_registers import RegisterProver

        if self._prover is None:
            self._prover = RegisterProver()
        return self._prover.others(ProcessCode(self.modules, read, symbol_at), found, address)

    def look_again(self) -> None:
        """Look for code that was added or removed: the process has run."""
        if self._prover is not None:
            self._prover.renew()
        self.modules.look_again()
        if not self.modules.results:
            self._forget_plans()
            self._run_time_changed(self)

    def run_time_name(self, pc: int) -> str:
        """Return the name with which the code at an address was registered at run time; empty: it was not."""
        return self.run_time.name(pc) if self.run_time is not None else ""

    def _is_signal_frame(self, pc: int) -> bool:
        found = self.modules.results[pc]
        if isinstance(found, Found) and found.signal:
            return True
        place = self.entry_places.get(pc - 1) or self.entry_places.get(pc)
        if place is not None:
            return place.kind is PlaceKind.EXCEPTION
        codes = [frame.code for frame in self.arch.signal_frames]
        try:
            return read(pc, max(map(len, codes))).startswith(tuple(codes))
        except MemoryReadError:
            return False

    def _returns_to(self, inner_pc: int, pc: int, sp: int) -> bool:
        """Return whether memory shows that a frame that was left to GDB returns to another frame."""
        cfa = sp - self.arch.sp_from_cfa & ADDRESS_MASK
        self.read_word.forget()
        offsets = {self._ra_offset(address) for address in (inner_pc, inner_pc - 1)} - {None}
        for offset in offsets:
            try:
                word = self.read_word(cfa + (offset or 0) & ADDRESS_MASK)
            except MemoryReadError:
                continue
            if pc in (word, self.arch.strip(word, self.arch.pac_mask)):
                return True
        return not offsets  # not known; most frames are called

    def _ra_offset(self, address: int) -> int | None:
        """Return the offset of the return address from the CFA; ``None``: it is elsewhere, or unknown."""
        found = self.modules.results[address]
        rule = found.rule if isinstance(found, Found) else self.modules.cfi_rule(address)
        if rule is None:
            return -WORD_SIZE if self.arch.ra is None else None
        place = rule.ra
        return place.offset if place is not None and place.base == CFA and place.in_memory else None


def is_run_time(path: str) -> bool:
    """Return whether a file may be of a library with which a process registers code, or an image of such code."""
    return "unwind" in Path(path).name or path.startswith("<<")


def _is_readable(pc: int) -> bool:
    try:
        return bool(read(pc, 1))
    except MemoryReadError:
        return False
