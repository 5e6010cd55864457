"""The modules of one inferior, and the search in them.

GDB needs long to list all modules if there are hundreds, so the list is only made anew for an address that belongs to
no known module.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Callable, Protocol

import gdb

from gdb_plugin.interface.texts import path_of
from gdb_plugin.process.memory import read
from gdb_plugin.process.modules import discover_modules, find_module, list_modules
from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.unwind.modules import Generate, Module, Modules
from sframe_unwind.unwind.modules_by_code import ModulesByCode

if TYPE_CHECKING:
    from sframe_unwind.debugger.kernel_modules import ModulePlaces
    from sframe_unwind.runtime_code.source import RunTimeCode


_MOST_GONE = 100
"""Maximum number of unloaded modules whose data is kept."""


class Listener(Protocol):
    """Is told of changes of the modules."""

    def forget(self) -> None:
        """Forget everything that was found by the modules: they have been replaced."""

    def forget_outside(self) -> None:
        """Forget what is known of addresses outside of the modules of GDB's list: modules came or went."""


class ModuleList:
    """The modules of one inferior.

    :param may_execute: whether a GDB command can be run now.
    :param report: shows one line to the user, once.
    :param generate: makes SFrame for modules that have none.
    :param by_code: use the machine code where neither SFrame nor CFI describes an address.
    """

    def __init__(
        self,
        arch: Arch,
        may_execute: Callable[[], bool],
        report: Callable[[str], None],
        generate: Generate | None,
        by_code: bool,
    ) -> None:
        self.modules = Modules(arch, ())
        """All modules, and the run-time code: the data for a pc."""
        self.of_gdb: set[Module] = set()
        """The modules that GDB lists, which are not those that are in memory only."""
        self.spans: RangeMap[Module] = RangeMap(())
        """The addresses of :attr:`of_gdb`."""
        self.listeners: list[Listener] = []
        self._arch = arch
        self._may_execute = may_execute
        self._report = report
        self._generate = generate
        self._by_code = by_code
        self._run_time: RunTimeCode | None = None
        self._places: ModulePlaces | None = None
        """Finds the modules of the Linux kernel, if the inferior is one."""
        self._listed: dict[object, Module] = {}
        self._build_ids: dict[Module, str] = {}
        """The build IDs of the modules that were loaded while the process ran, if they have one."""
        self._gone: dict[object, Module] = {}
        """Unloaded modules with a build ID, kept because programs load the same library again and again."""
        self._is_complete = False

    def files_added(self, objfiles: Sequence[gdb.Objfile]) -> None:
        """Take account of added files."""
        self._is_complete = False
        completed = {path_of(objfile.owner) for objfile in objfiles if objfile.owner is not None}
        if any(module.name in completed for module in self._listed.values()):
            # A separate debug file that was added after its module can have CFI for it.
            self._listed = {key: module for key, module in self._listed.items() if module.name not in completed}
            self._renew()
        self._tell_outside()

    def files_removed(self, paths: Container[str]) -> None:
        """Take account of files that GDB has freed, except for the program itself."""
        gone = {key: module for key, module in self._listed.items() if module.name in paths}
        removed = set(gone.values())
        self._listed = {key: module for key, module in self._listed.items() if module not in removed}
        if len(self._gone) + len(gone) > _MOST_GONE:
            for module in self._gone.values():
                del self._build_ids[module]
            self._gone.clear()
        self._gone.update((key, module) for key, module in gone.items() if module in self._build_ids)
        self._is_complete = False  # another copy of a file may be loaded
        self.of_gdb -= removed
        self.spans.remove(removed)
        self.modules.remove(removed)
        self._tell_outside()

    def complete(self) -> None:
        """List all modules, unless that has been done."""
        if not self._is_complete:
            self._list()

    def cover(self, pc: int) -> None:
        """Update the list if a pc may belong to a module that is not listed yet."""
        if not self._is_complete and self.spans.get(pc) is None and not self._find(pc):
            self._list()

    def list_anew(self, places: ModulePlaces) -> None:
        """List all modules of a Linux kernel: GDB knows only some of the addresses of its modules.

        :param places: finds them.
        """
        self._places, self._listed = places, {}
        self._list()

    def add_run_time(self, run_time: RunTimeCode) -> None:
        """From now on, also search the code that the process has registered."""
        self._run_time = run_time
        self._renew()

    def look_again(self) -> bool:
        """Look for run-time code that was added or removed; return whether the code may have changed."""
        self.modules.look_again()
        if self.modules.results:
            return False
        self.tell_all()
        return True

    def _list(self) -> None:
        self._is_complete = may_execute = self._may_execute()
        known = self._listed
        modules = list_modules(self._arch, may_execute, self._places)
        self._listed = {(module.name, module.ranges): module for module in modules}
        for key in self._listed.keys() & known.keys():
            self._listed[key] = known[key]  # keeps the data that it has read
        self._renew()

    def _find(self, pc: int) -> bool:
        """Add the one module at a pc to a list that lacks it; return whether there is one."""
        found = find_module(self._arch, self._may_execute(), pc) if self._listed else None
        if found is None:
            return False
        module = self._again(found)
        self._listed[module.name, module.ranges] = module
        self.of_gdb.add(module)
        self.spans.add((*span, module) for span in module.ranges)
        self.modules.add([module])
        self._tell_outside()
        return True

    def _again(self, found: Module) -> Module:
        """Return the kept object of a module that was unloaded and is back at its place, with its opened sections."""
        known = self._gone.pop((found.name, found.ranges), None)
        before = "" if known is None else self._build_ids.pop(known)
        try:
            build_id = found.build_id()
        except SFrameError:
            return found
        module = found if known is None or before != build_id else known
        if build_id:
            self._build_ids[module] = build_id
        return module

    def _renew(self) -> None:
        self.of_gdb = set(self._listed.values())
        self.spans = RangeMap((*span, module) for module in self._listed.values() for span in module.ranges)
        self.modules = (ModulesByCode if self._by_code else Modules)(
            arch=self._arch,
            modules=self._listed.values(),
            report=self._report,
            discover=lambda: discover_modules(self._arch, self._may_execute()),
            run_time=self._run_time,
            generate=self._generate,
            read=read,
        )
        self.tell_all()

    def tell_all(self) -> None:
        """Tell the listener that the modules, or the rules at their addresses, have changed."""
        for listener in self.listeners:
            listener.forget()

    def _tell_outside(self) -> None:
        for listener in self.listeners:
            listener.forget_outside()
