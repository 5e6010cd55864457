"""One inferior in the core's terms: its architecture, registers, memory and modules."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import gdb

from gdb_plugin.interface.texts import path_of
from gdb_plugin.process.memory import read
from gdb_plugin.process.module_list import ModuleList
from gdb_plugin.process.registers import Registers
from gdb_plugin.process.symbols import Symbols
from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import WordReader
from sframe_unwind.runtime_code.opening import open_run_time_code
from sframe_unwind.unwind.modules import Found, Generate, Modules

if TYPE_CHECKING:
    from sframe_unwind.kernel.entry_code import EntryPlace
    from sframe_unwind.kernel.linux import Kernel
    from sframe_unwind.runtime_code.source import RunTimeCode

_NO_PLACES: RangeMap[EntryPlace] = RangeMap(())


class Process:
    """The data that unwinding needs of one inferior.

    :param symbols: finds the code that the process has registered at run time.
    :param report: shows one line to the user.
    :param may_execute: whether a GDB command can be run now.
    :param run_time_changed: called when the registered code has changed.
    :param generate: makes SFrame for modules that have none.
    :param by_code: use the machine code where neither SFrame nor CFI describes an address.
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
        by_code: bool,
    ) -> None:
        self.arch = arch
        self.read_word = WordReader(read, arch.byteorder)
        """Reads the stack for one frame; the chunks that it keeps are dropped before it reads for another frame."""
        self.listed = ModuleList(arch, may_execute, self.report_once, generate, by_code)
        self.run_time: RunTimeCode | None = None
        self.is_kernel_wanted = False
        """Whether a frame has a pc in the kernel's half of the address space, but no kernel has been looked for."""
        self.kernel: Kernel | None = None
        self.no_kernel = ""
        """Why the inferior is not a kernel."""
        self._symbols = symbols
        self._report = report
        self._reported: set[str] = set()
        self._registers = {architecture: Registers(architecture, arch)}
        self._run_time_changed = run_time_changed
        self._look_for_run_time()

    @property
    def modules(self) -> Modules:
        """The data for a pc: all modules, and the run-time code."""
        return self.listed.modules

    def files_added(self, objfiles: Sequence[gdb.Objfile]) -> None:
        """Take account of added files."""
        if any(is_run_time(path_of(objfile)) for objfile in objfiles):
            self._look_for_run_time()
        self.listed.files_added(objfiles)

    def files_removed(self, paths: Container[str]) -> None:
        """Take account of files that GDB has freed, except for the program itself."""
        self.listed.files_removed(paths)

    def complete(self) -> None:
        """List all modules and find all run-time code, unless that has been done."""
        self.listed.complete()
        if not self._run_time_looked_for:
            self._look_for_run_time()

    def cover(self, pc: int) -> None:
        """Look for the module at a pc, or for run-time code, if none is known there."""
        self.listed.cover(pc)
        if not self._run_time_looked_for and not any(
            isinstance(self.modules.results[address], Found) or self.modules.has_cfi(address)
            for address in (pc, pc - 1)
        ):
            self._look_for_run_time()

    def _look_for_run_time(self) -> None:
        self._run_time_looked_for = True
        if self.run_time is not None:
            return
        self.run_time = open_run_time_code(self.arch, read, self._symbols.addresses, self.report_once)
        if self.run_time is not None:
            self.listed.add_run_time(self.run_time)
            self._run_time_changed(self)

    def look_again(self) -> None:
        """Look for code that was added or removed: the process has run."""
        if self.listed.look_again():
            self._run_time_changed(self)

    def run_time_name(self, pc: int) -> str:
        """Return the name with which the code at an address was registered at run time; empty: it was not."""
        return self.run_time.name(pc) if self.run_time is not None else ""

    def report_once(self, line: str) -> None:
        """Show one line to the user, unless it has been shown."""
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)

    def want_kernel(self, pc: int) -> None:
        """Ask for a search for the kernel at the next stop or prompt, where GDB commands can be run.

        :param pc: pc of a frame; without effect if no kernel can have it.
        """
        if self.kernel is None and not self.no_kernel and self.arch.may_be_kernel(pc):
            self.is_kernel_wanted = True

    def look_for_kernel(self) -> None:
        """Find out whether the inferior is a Linux kernel; call this only where GDB commands can be run."""
        from gdb_plugin.process.kernel import kernel_of, tell_gdb
        from sframe_unwind.debugger.kernel_modules import ModulePlaces

        self.is_kernel_wanted = False
        self.listed.tell_all()
        try:
            self.kernel = kernel_of(self.arch, self.modules)
            tell_gdb(self.kernel)
            self.listed.list_anew(ModulePlaces(self.kernel, self.report_once))
        except (SFrameError, gdb.error) as error:
            self.no_kernel = str(error)

    def known_kernel(self) -> Kernel:
        """Return the Linux kernel that the inferior is; call this only where GDB commands can be run.

        :raises KernelError: it is not one.
        """
        from sframe_unwind.errors import KernelError

        if self.kernel is None and not self.no_kernel:
            self.look_for_kernel()
        if self.kernel is None:
            raise KernelError(self.no_kernel)
        return self.kernel

    @property
    def entry_places(self) -> RangeMap[EntryPlace]:
        """The places of the kernel's entry code; empty if the inferior is not a kernel."""
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


def is_run_time(path: str) -> bool:
    """Return whether a file may be a library by which a process registers code, or an image of registered code."""
    return "unwind" in Path(path).name or path.startswith("<<")
