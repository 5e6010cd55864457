"""Follows the modules of one process, and decides whether SFrame can change any stack.

LLDB broadcasts an event for each set of modules that is loaded or unloaded, before it asks for frames again.  Modules
that have not moved keep all data about them.

Nothing here waits for LLDB's lock on the target, except when memory is read: in :meth:`LoadedModules.judge`, and for
the sections of modules when their addresses are looked up.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import lldb

from lldb_plugin.interface.telling import Report
from lldb_plugin.process import places
from lldb_plugin.process.differences import Comparison, Differences, tolerated
from lldb_plugin.process.memory import reader
from lldb_plugin.process.modules import describe, header_section_of
from lldb_plugin.process.native_cfi import DebugFrames, NativeCfi, debug_frames_of
from lldb_plugin.process.registers import pac_mask_of
from lldb_plugin.process.runtime_code import registers_code, run_time_code
from lldb_plugin.process.shared_rules import SharedRules
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.code_judge import rule_judge
from sframe_unwind.debugger.module_agreement import Difference
from sframe_unwind.debugger.settings import ALWAYS, AUTO, CODE, FALLBACK, TABLES, Settings
from sframe_unwind.errors import KernelError, MemoryReadError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.modules import Generate, Module, Modules
from sframe_unwind.unwind.modules_by_code import ModulesByCode
from sframe_unwind.unwind.precedence import Precedence
from sframe_unwind.unwind_rule import UnwindRule

if TYPE_CHECKING:
    from sframe_unwind.debugger.kernel_modules import ModulePlaces
    from sframe_unwind.kernel.linux import Kernel

_JUDGED_SIZE = 4096
"""Maximum size in bytes of a function whose code decides between SFrame and CFI while LLDB waits for frames."""
_JUDGED = 64
"""Maximum number of addresses in a process about which the code decides."""
_SECONDS = 0.02
"""Time limit for comparing modules when LLDB asks for frames."""

_EVENTS = lldb.SBTarget.eBroadcastBitModulesLoaded | lldb.SBTarget.eBroadcastBitModulesUnloaded


class _Loaded(NamedTuple):
    """A module of LLDB, and the corresponding module of the core."""

    module: lldb.SBModule
    address: int
    module_or_none: Module | None
    """``None``: it has no code in memory."""
    comparison: Comparison | None
    debug_frames: DebugFrames | None


class LoadedModules:
    """The modules of a process.

    :param differences: compares the modules with their CFI.
    :param report: called with one line for the user about unusable data.
    :param generates: what is generated for code without SFrame, see
        :data:`sframe_unwind.debugger.modes.GENERATED`.
    """

    def __init__(
        self,
        target: lldb.SBTarget,
        process: lldb.SBProcess,
        arch: Arch,
        differences: Differences,
        report: Report,
        generates: str,
    ) -> None:
        self._differences = differences
        self.arch = arch
        self._target = target
        self._read = reader(process)
        self._event = lldb.SBEvent()
        self._report = report
        self._generate: Generate | None = None
        self._by_code = generates == CODE
        if generates == TABLES:
            from sframe_unwind.debugger.generating import generator

            self._generate = generator(arch)
        self._listener = lldb.SBListener("sframe-unwind modules")
        self._listener.StartListeningForEvents(target.GetBroadcaster(), _EVENTS)
        self._loaded: list[_Loaded] = []
        self._unplaced: list[lldb.SBModule] = []
        self._pending: list[Comparison] = []
        self._largest = Difference.NONE
        """The largest difference that was found in the modules that have been compared."""
        self._kernel: Kernel | None = None
        self.no_kernel = ""
        """Why the process is not a Linux kernel that can be unwound; empty: it is one, or has not been examined."""
        self._list_anew()

    def kernel(self) -> Kernel | None:
        """Return the Linux kernel that runs in the process; ``None``: there is none, see :attr:`no_kernel`."""
        if self._kernel is None and not self.no_kernel:
            from lldb_plugin.process.kernel import kernel_of

            try:
                self._kernel = kernel_of(self._target, self.arch, self._read)
            except KernelError as error:
                self.no_kernel = str(error)
            except MemoryReadError:
                pass  # paging is not enabled yet: this is tried again
        return self._kernel

    def _places(self) -> ModulePlaces | None:
        from sframe_unwind.debugger.kernel_modules import ModulePlaces

        kernel = self.kernel()
        return None if kernel is None else ModulePlaces(kernel, self._report)

    def refresh(self, fully: bool = False) -> None:
        """Bring :attr:`modules` up to date.

        :param fully: check all modules even if no event announces a change.
        """
        event = lldb.SBEvent()
        told, others = False, fully or self._some_came_to_a_place()
        while self._listener.GetNextEvent(event):  # LLDB's events do not name the modules that a process has loaded
            told, others = True, others or event.GetType() != lldb.SBTarget.eBroadcastBitModulesLoaded
        added = self._target.GetNumModules() - len(self._loaded)
        if (told or added or others) and (others or not self._append(added)):
            self._list_anew()
        if self.modules.look_again():
            self._forget_rules()

    def is_up_to_date(self) -> bool:
        """Return whether no module has come or gone since the last :meth:`refresh`; this waits for no lock."""
        if self._target.GetNumModules() != len(self._loaded) or self._some_came_to_a_place():
            return False
        return not self._listener.PeekAtNextEvent(self._event)

    def _some_came_to_a_place(self) -> bool:
        """Return whether a module that LLDB has from an earlier run is loaded now; LLDB sends no event for it."""
        return any(_address(module, self._target) != lldb.LLDB_INVALID_ADDRESS for module in self._unplaced)

    def can_change_stacks(self, settings: Settings) -> bool:
        """Return whether SFrame can give other frames than LLDB for any stack; this waits for no lock.

        ``False`` is certain.  It requires that all modules have CFI, with the same rules as their SFrame.
        """
        limit = tolerated(settings, self.arch)
        return limit is None or self.modules.run_time is not None or bool(self._pending) or self._largest > limit

    def judge(self, seconds: float = _SECONDS) -> None:
        """Compare SFrame and CFI of modules that have not been compared yet, for a limited time."""
        until = time.perf_counter() + seconds
        while self._pending and (found := self._pending[-1].advance(until)) is not None:
            self._largest = max(self._largest, found)
            ended = self._pending.pop()
            if ended.unusable:
                self._report(ended.unusable)

    def _list_anew(self) -> None:
        """List all modules anew; modules that have not moved are kept."""
        before = {loaded.address: loaded for loaded in self._loaded}
        listed = []
        for module in self._target.module_iter():
            address = _address(module, self._target)
            same = before.get(address)
            listed.append(same if same is not None and same.module == module else self._describe(module, address))
        if self._loaded and listed == self._loaded:
            return
        self._loaded = listed
        self._unplaced = _unplaced(listed)
        self._kernel, self.no_kernel = None, ""
        self.modules = (ModulesByCode if self._by_code else Modules)(
            self.arch,
            _modules(listed),
            self._report,
            run_time=run_time_code(self._target, self._read, self.arch, self._report),
            generate=self._generate,
            read=self._read,
        )
        self._forget_rules()
        comparisons = [one.comparison for one in listed if one.comparison]
        self._pending = [comparison for comparison in comparisons if comparison.difference is None]
        known = (comparison.difference for comparison in comparisons if comparison.difference is not None)
        self._largest = max(known, default=Difference.NONE)

    def _append(self, count: int) -> bool:
        """Add the modules at the end of LLDB's list, where LLDB adds new ones; return whether these are all.

        :param count: number of additional modules.
        """
        known = len(self._loaded)
        if not known or count <= 0:
            return False
        last = self._target.GetModuleAtIndex(known - 1)
        if last != self._loaded[-1].module or _address(last, self._target) != self._loaded[-1].address:
            return False
        added = [self._target.GetModuleAtIndex(index) for index in range(known, known + count)]
        if any(map(registers_code, added)):
            return False
        described = [self._describe(module, _address(module, self._target)) for module in added]
        self._loaded += described
        self._unplaced += _unplaced(described)
        self.modules.add(_modules(described))
        self.precedence.decisions.clear()
        for rules in self.shared.values():
            rules.forget_unknown()
        self._pending += [one.comparison for one in described if one.comparison]
        return True

    def _describe(self, module: lldb.SBModule, address: int) -> _Loaded:
        described = describe(
            lambda section: int(section.GetLoadAddress(self._target)),
            module,
            self._read,
            self.arch,
            self._places,
        )
        comparison, debug_frames = None, None
        if described is not None:
            comparison = self._differences.of_module(module, described, self.arch, self._read)
            debug_frames = debug_frames_of(module, self._target, self.arch)
        return _Loaded(module, address, described, comparison, debug_frames)

    def _debug_frames_of(self, module: Module) -> DebugFrames | None:
        return next((one.debug_frames for one in self._loaded if one.module_or_none is module), None)

    def _forget_rules(self) -> None:
        self.native_cfi = NativeCfi(self.modules, self._debug_frames_of, self._report)
        self.precedence = self._precedence()
        prefer_cfi = {AUTO: self.precedence.prefers_cfi, ALWAYS: lambda _: False, FALLBACK: lambda _: True}
        self.shared = {mode: SharedRules(self.modules, prefers) for mode, prefers in prefer_cfi.items()}

    def _precedence(self) -> Precedence:
        """Return the decisions of mode ``auto`` between SFrame and CFI."""
        target = self._target
        code = places.code(places.in_process(target), self.modules, self._read)

        def can_follow(rule: UnwindRule) -> bool:
            return not rule.ra_signed or pac_mask_of(target.GetProcess(), self.arch) is not None

        judge = rule_judge(code, _JUDGED_SIZE, _JUDGED)
        return Precedence(self.modules, self.native_cfi.match, judge=judge, can_follow=can_follow)


def _address(module: lldb.SBModule, target: lldb.SBTarget) -> int:
    """Return the address of a module's first section; if that is not loaded, a number that depends on the others.

    The sections of an unlinked file, such as a module of the kernel, are loaded one by one, and not all are.

    The :class:`lldb.SBAddress` of a module's header would suffice, but asking for it waits for LLDB's lock on the
    target.
    """
    count = module.GetNumSections()
    section = module.GetSectionAtIndex(0) if count else header_section_of(module)
    address = int(section.GetLoadAddress(target))
    if address != lldb.LLDB_INVALID_ADDRESS:
        return address
    others = (int(module.GetSectionAtIndex(index).GetLoadAddress(target)) for index in range(1, count))
    places = [place for place in others if place != lldb.LLDB_INVALID_ADDRESS]
    return hash(tuple(places)) if places else address


def _unplaced(listed: list[_Loaded]) -> list[lldb.SBModule]:
    """Return the modules that are loaded nowhere."""
    return [loaded.module for loaded in listed if loaded.address == lldb.LLDB_INVALID_ADDRESS]


def _modules(listed: list[_Loaded]) -> list[Module]:
    return [loaded.module_or_none for loaded in listed if loaded.module_or_none is not None]
