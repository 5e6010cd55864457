"""Finds out whether GDB has a file for which the plugin is of use: one with SFrame, a Linux kernel, or run-time code.

GDB tells of each new file.  If this machine has the file, its headers are read.  Otherwise only GDB can read it, and
is asked for the names of its sections, which costs no packet to a remote target.
"""

from __future__ import annotations

import gdb

from gdb_plugin.interface.texts import path_of
from sframe_unwind import TYPE_CHECKING
from sframe_unwind.debugger.of_use import is_of_use

if TYPE_CHECKING:
    from typing import Any, Callable

_IN_GDB = "maintenance info sections -all-objects .sframe .orc_unwind __ksymtab"
_SECTIONS = (": .sframe ", ": .orc_unwind ", ": __ksymtab ")
_RUN_TIME = "<< JIT compiled code"
"""The beginning of the names of images that a process has registered for GDB."""
_VDSO = "system-supplied DSO"
"""The beginning of the name of the vDSO.  It has CFI, and a command of GDB's would unwind a frame when it is added."""


class FilesOfUse:
    """The files that the plugin is of use for.

    :param changed: called when there may be a first one.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._found: list[gdb.Objfile] = []
        self._has_none = False
        """Whether GDB has a process, but no file of its program."""
        self._watching = self._expects_program = self._expects_stop = False
        self._unread: list[gdb.Objfile] = []
        """Files that only GDB can read, and which it has not been asked about."""

    def watch(self, wanted: bool) -> None:
        """Notice new files from now on, and look at those that there are, or stop doing so."""
        if wanted == self._watching:
            return
        self._watching = wanted
        (gdb.events.new_objfile.connect if wanted else gdb.events.new_objfile.disconnect)(self._added)
        self._expect_program(wanted and not path_of(gdb.current_progspace()))
        if not wanted:
            self._expect_stop(False)
            self._found, self._unread = [], []
            return
        for space in gdb.progspaces():
            for objfile in space.objfiles():
                self._look_at(objfile)
        self._expect_stop(False)
        self._ask()
        if gdb.selected_thread() is not None:
            self._look_for_program()

    def are_there(self) -> bool:
        """Return whether there is any such file now; a file that GDB has freed does not count."""
        self._found = [objfile for objfile in self._found if objfile.is_valid()]
        return bool(self._found) or self._has_none

    def _added(self, event: Any) -> None:
        had_none = self._has_none
        if (had_none or self._expects_program) and path_of(gdb.current_progspace()):
            self._has_none = False
            self._expect_program(False)
        if self._look_at(event.new_objfile) or had_none:
            self._changed()

    def _look_at(self, objfile: gdb.Objfile) -> bool:
        """Return whether the plugin is of use for a file."""
        path = path_of(objfile)
        if objfile.owner is not None or not path or path.startswith(_VDSO):  # a debug file has nothing that is loaded
            return False
        of_use = path.startswith(_RUN_TIME) or is_of_use(path)
        if of_use is None:
            self._unread.append(objfile)
            self._expect_stop(True)
        if of_use:
            self._found.append(objfile)
        return bool(of_use)

    def _expect_program(self, wanted: bool) -> None:
        """Handle the event of a new thread, or stop doing so, to notice a process without a program.

        There is no handler at other times, because a handler of this event changes GDB's annotations.
        """
        if wanted != self._expects_program:
            self._expects_program = wanted
            (gdb.events.new_thread.connect if wanted else gdb.events.new_thread.disconnect)(self._began)

    def _began(self, event: Any) -> None:
        self._expect_program(False)
        self._expect_stop(True)

    def _expect_stop(self, wanted: bool) -> None:
        """Look again at the next stop or prompt, since GDB may not have found the program of a new process yet.

        Besides, GDB 13 ends the command that lets a program run if a GDB command is run meanwhile.
        """
        if wanted != self._expects_stop:
            self._expects_stop = wanted
            for registry in (gdb.events.stop, gdb.events.before_prompt):
                (registry.connect if wanted else registry.disconnect)(self._ended)

    def _ended(self, event: object = None) -> None:
        if isinstance(event, gdb.BreakpointEvent) and any(point.commands for point in event.breakpoints):
            return  # GDB would run the commands of the breakpoint
        self._expect_stop(False)
        self._ask()
        self._look_for_program()

    def _ask(self) -> None:
        """Ask GDB about the files that only it can read."""
        unread, self._unread = [objfile for objfile in self._unread if objfile.is_valid()], []
        if not unread:
            return
        # Imported for the first such file, not at each start of GDB.
        from gdb_plugin.interface.output import output_of

        if any(section in output_of(_IN_GDB) for section in _SECTIONS):
            self._found += unread
            self._changed()

    def _look_for_program(self) -> None:
        """Find out whether GDB has a process, but no program: then only its memory shows whether there is SFrame."""
        self._has_none = not path_of(gdb.current_progspace())
        if self._has_none:
            self._changed()
