"""Keeps the state of the unwinder for each inferior, and notices when it is outdated."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Callable

import gdb

from gdb_plugin.frames.frame_names import FrameNames
from gdb_plugin.frames.unwinding import Unwinding
from gdb_plugin.interface.output import may_execute
from gdb_plugin.interface.selection import forget_frames
from gdb_plugin.interface.texts import path_of
from gdb_plugin.lifecycle.run_state import RunState, thread_of
from gdb_plugin.process.process import Process, is_run_time
from gdb_plugin.process.registers import arch_of
from gdb_plugin.process.symbols import Symbols
from gdb_plugin.version import TELLS_FREED_FILES
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.debugger.settings import CODE, OFF, TABLES

_CHANGED = ("exited", "memory_changed")
"""Events: the inferior ended, or its memory was written."""
_FILES_CHANGED = ("new_objfile", "clear_objfiles", "free_objfile", "executable_changed", "corefile_changed")
"""Events that GDB sends at once, also within a command."""


class _Known:
    """The state of the unwinder for a process, and the state of the inferior for which it is valid.

    :param files: number of file changes that it takes into account.
    :param runs: number of commands that let the inferior run, up to its creation.
    :param objfiles: the objects themselves, so that no later object can be mistaken for one of them, and their paths.
    :param unwinding: ``None``: SFrame has no ABI for it.

    The path of the program is kept, too: another program can have another architecture.
    """

    __slots__ = ("files", "objfiles", "pid", "program", "runs", "unwinding")

    def __init__(
        self, pid: int, files: int, runs: int, objfiles: list[tuple[gdb.Objfile, str]], unwinding: Unwinding | None
    ) -> None:
        self.pid = pid
        self.files = files
        self.runs = runs
        self.objfiles = objfiles
        self.unwinding = unwinding
        self.program = path_of(gdb.current_progspace())


class Session:
    """Keeps one process for each inferior, as long as its modules do not change.

    No data of a process depends on where the program has stopped: registers and memory are read when GDB asks for a
    frame.

    :param report: shows one line to the user.
    :param frame_names: is given the current process.
    :param files_freed: called at the next stop or prompt after GDB may have freed a file.
    :param settled: called at a stop or prompt where GDB commands can be run.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        frame_names: FrameNames,
        files_freed: Callable[[], None],
        settled: Callable[[], None],
    ) -> None:
        self._when_settled = settled
        self._report = report
        self._files_freed = files_freed
        self._frame_names = frame_names
        self._symbols = Symbols()
        self._known: dict[int, _Known] = {}
        self._files = 0
        self._runs = 0
        self._freeing = False
        self._asked: tuple[int, int] | None = None
        self._settled = True
        self._outdated = False
        self._watching = False
        self._generates = OFF
        self._run_state = RunState()
        self.is_running = self._run_state.is_running
        """Returns whether the selected thread runs, from the user's view."""

    def generate(self, wanted: str) -> None:
        """Generate what the user wants from now on, see :data:`sframe_unwind.debugger.modes.GENERATED`."""
        if wanted != self._generates:
            self._generates = wanted
            self._known.clear()

    def watch(self, wanted: bool, by_user: bool) -> None:
        """Subscribe to GDB's events about the inferiors; without them, every command of the plugin checks the modules.

        There is no subscription while the plugin sleeps: GDB makes an object for each event that has a subscriber.

        :param by_user: a command of the user's is the reason; otherwise the inferior may be running, from the user's
            view, and GDB may be in the middle of an internal stop.
        """
        if wanted == self._watching:
            return
        self._watching = wanted
        self._may_have_changed()
        for known in self._known.values():  # without events, GDB may have popped frames unnoticed
            if known.unwinding is not None:
                known.unwinding.popping.unknown = {}
        for names, handler in (
            (("cont",), self._continued),
            (("inferior_call",), self._called),
            (_CHANGED, self._changed),
            (_FILES_CHANGED, self._files_changed),
            (("free_objfile",), self._free),
            (("stop",), self._stopped),
            (("before_prompt",), self._prompted),
        ):
            for name in names:
                registry = getattr(gdb.events, name, None)
                if registry is not None:
                    (registry.connect if wanted else registry.disconnect)(handler)
        self._run_state.begin(wanted and not by_user)
        if wanted and gdb.selected_thread() is not None:
            # In a script, no stop and no prompt come between the command and the first frame that GDB asks for.  If the
            # connection breaks in the command after this one, GDB 13 fails at its end if symbols were looked up.
            self._symbols.want()
            if by_user:
                self._look_up(True)

    def _may_have_changed(self) -> None:
        """At the next use, check whether the known modules are still valid, and look for other run-time code."""
        self._files += 1
        self._runs += 1

    def _files_changed(self, event: object) -> None:
        self._files += 1

    def _continued(self, event: Any) -> None:
        """Record that the inferior runs: once for each command, not for each internal stop of GDB."""
        self._run_state.continued(event)
        self._changed(event)

    def _called(self, event: object) -> None:
        """Record that GDB calls a function, or has called one."""
        self._run_state.called(event)
        self._changed(event)

    def _changed(self, event: object) -> None:
        self._runs += 1
        self._settled = False

    def _free(self, event: object) -> None:
        """Record that GDB is about to free a file; the file still exists at this moment."""
        self._freeing = True

    def _stopped(self, event: Any) -> None:
        self._look_for_left(event)
        self._run_state.stopped(event)
        self._look_for_freed()
        if not self._watching:  # the last file of use is gone
            return
        if not isinstance(event, gdb.BreakpointEvent) or not any(point.commands for point in event.breakpoints):
            self._look_for_kernel()
            self._settle()
        self._look_up(True)

    def _prompted(self) -> None:
        self._look_for_freed()
        if not self._watching:
            return
        self._look_for_kernel()
        self._look_up(False)
        self._settle()

    def _look_for_freed(self) -> None:
        if self._freeing or not TELLS_FREED_FILES:
            self._freeing = False
            self._files += 1
            self._files_freed()

    def _look_for_left(self, event: Any) -> None:
        """Forget callers with unknown registers whose frames the program has left; see :class:`Popping`."""
        known = self._known.get(gdb.selected_inferior().num)
        if known is None or known.unwinding is None or not known.unwinding.popping.unknown:
            return
        popping, selected = known.unwinding.popping, gdb.selected_thread()
        if selected is None or thread_of(event) not in (None, selected.ptid):
            popping.unknown = {}  # the frames may belong to another thread
            return
        with suppress(gdb.error):  # the selected thread runs
            frame = gdb.newest_frame()
            popping.stopped(int(frame.read_register(known.unwinding.process.registers(frame).sp)))

    def look_for_kernel(self) -> None:
        """Look for a kernel, if the inferior stopped in one before the plugin was loaded."""
        if gdb.selected_thread() is None:
            return
        with suppress(gdb.error):  # the thread runs
            frame = gdb.newest_frame()
            arch = arch_of(frame.architecture())
            is_likely = arch is not None and arch.may_be_kernel(frame.pc() & ADDRESS_MASK)
            unwinding = self.current(frame) if is_likely else None
            if unwinding is not None:
                process = unwinding.process
                process.is_kernel_wanted = process.kernel is None
                self._look_for_kernel()

    def _look_for_kernel(self) -> None:
        """Look for the kernel to which a frame belonged.  This needs GDB commands, which the unwinder must not run."""
        known = self._known.get(gdb.selected_inferior().num)
        if known is None or known.unwinding is None:
            return
        process = known.unwinding.process
        if process.is_kernel_wanted:
            process.look_for_kernel()
            if process.kernel is not None:
                self._frame_names.follow(process)
                forget_frames()

    def _look_up(self, at_stop: bool) -> bool:
        """Look up the symbols of run-time code; return whether new ones were found, so that all data is made anew."""
        found = self._symbols.look_up(at_stop)
        if found:
            self._known.pop(gdb.selected_inferior().num, None)
            forget_frames()
        return found

    def _settle(self) -> None:
        """Do what had to wait until GDB commands can be run: no commands of a breakpoint are pending any more."""
        self._settled = True
        self._when_settled()
        if self._outdated:
            self._outdated = False
            forget_frames()

    def current(self, frame: Any, in_command: bool = False) -> Unwinding | None:
        """Return the state of the unwinder for the selected inferior; ``None``: SFrame has no ABI for it.

        :param frame: any frame of the inferior, pending or not.
        :param in_command: a command of the plugin calls this, not the unwinder, so GDB commands can be run: the
            commands of a breakpoint have been run before, or are being run and are not started again.
        """
        inferior = gdb.selected_inferior()
        number, pid = self._asked = inferior.num, inferior.pid
        if in_command and not self._watching:
            self._may_have_changed()
        known = self._known.get(number)
        if known is None or known.files != self._files or known.pid != pid:
            known = self._renew(frame, known)
        if known.runs != self._runs:
            if known.unwinding is None:
                known = self._renew(frame, known)
            else:
                known.unwinding.look_again()
            known.runs = self._runs
        unwinding = known.unwinding
        if unwinding is not None and in_command:
            settled, self._settled = self._settled, True
            unwinding.process.complete()
            self._settled = settled
            self._look_for_kernel()
            if self._look_up(False):
                return self.current(frame, in_command)
        return unwinding

    def _renew(self, frame: Any, known: _Known | None) -> _Known:
        """Take account of another process or of other files; a process stays valid while none of its files is freed."""
        number, pid = self._asked or (0, 0)
        objfiles = gdb.objfiles()
        if known is not None and known.pid == pid and known.unwinding is not None:
            known.files = self._files
            process = known.unwinding.process
            if [objfile for objfile, _ in known.objfiles] == objfiles or self._update(process, known, objfiles):
                return known
        new = self._new_process(frame.architecture())
        self._frame_names.follow(new)
        unwinding = None if new is None else Unwinding(new)
        known = self._known[number] = _Known(pid, self._files, self._runs, _with_paths(objfiles), unwinding)
        return known

    def _update(self, process: Process, known: _Known, objfiles: list[gdb.Objfile]) -> bool:
        """Take account of files that came and went; ``False``: the program went, or run-time code may have gone."""
        gone = {path for objfile, path in known.objfiles if not objfile.is_valid()}
        is_other = path_of(gdb.current_progspace()) != known.program or known.program in gone
        if gone and (is_other or any(is_run_time(path) for path in gone)):
            return False
        if gone:
            process.files_removed(gone)
        old = {id(objfile) for objfile, _ in known.objfiles if objfile.is_valid()}
        added = [objfile for objfile in objfiles if id(objfile) not in old]
        if added:
            process.files_added(added)
        known.objfiles = _with_paths(objfiles)
        return True

    def _new_process(self, architecture: gdb.Architecture) -> Process | None:
        arch = arch_of(architecture)
        if arch is None:
            return None
        generate = None
        if self._generates == TABLES:
            from sframe_unwind.debugger.generating import generator

            generate = generator(arch)
        follow = self._frame_names.follow
        return Process(
            architecture=architecture,
            arch=arch,
            symbols=self._symbols,
            report=self._report,
            may_execute=self._may_execute,
            run_time_changed=follow,
            generate=generate,
            by_code=self._generates == CODE,
        )

    def _may_execute(self) -> bool:
        """Return whether a GDB command can be run; if not, make GDB forget its frames as soon as one can be run."""
        may = self._settled or may_execute()
        self._outdated |= not may
        return may

    def is_gone(self) -> bool:
        """Return whether the inferior that was current is gone: the connection broke when it was read."""
        inferior = gdb.selected_inferior()
        return (inferior.num, inferior.pid) != self._asked


def _with_paths(objfiles: list[gdb.Objfile]) -> list[tuple[gdb.Objfile, str]]:
    """Return files with their paths, which GDB does not tell any more when it has freed them."""
    return [(objfile, path_of(objfile)) for objfile in objfiles]
