"""Undoing a ``return`` that no hook can refuse, as GDB/MI's ``-exec-return``.

GDB pops a frame by copying the registers that it knows of the caller; no Python runs before that, and GDB 13 to 18 let
nobody replace an MI command.  But the next thing that GDB does is to ask the unwinders for the new innermost frame.
Where the program has not run since the stop, and no register was assigned to, a frame that was an outer one and is the
innermost one now was popped to.  If its registers were not all known, the command is ended there as by Ctrl-C (GDB
passes on no other exception of an unwinder), and the registers are put back as soon as GDB is idle: GDB drops its
frames with each register that is written, which it does not survive while it asks for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

import gdb

from gdb_plugin.registers import is_unknown

_ENDS = ("cont", "exited", "inferior_call", "register_changed")
"""After these a frame can be the innermost one for another reason."""
_SAVED = "_sframe_saved"
"""A convenience variable: GDB 13 has no other way to assign a value that is no number."""


class PopGuard:
    """The outer frames of a stop whose registers are not all known, and the registers of the innermost one.

    :param report: shows one line to the user.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self.doubts = False
        """Whether the last frame that GDB asked for does not give all registers of its caller."""
        self.places: dict[int, dict[int, str]] = {}
        """The frames that must not be popped to: name of an unknown register by pc and SP."""
        self._report = report
        self._thread: tuple[int, int, int] | None = None
        self._saved: list[tuple[gdb.RegisterDescriptor, gdb.Value]] = []
        self._awaits_stop = False

    def note(
        self, frame: gdb.PendingFrame, pc: int, sp: int, preserved: Iterable[tuple[str, gdb.RegisterDescriptor]]
    ) -> None:
        """Remember a frame whose inner frame may not give all registers.

        :param preserved: name and descriptor of the registers that a function must preserve.
        """
        unknown = next((name for name, register in preserved if is_unknown(frame, register)), None)
        self.doubts = unknown is not None
        if unknown is None:
            return
        thread = gdb.selected_thread()
        if thread is None:
            return  # a core file
        if not thread.is_stopped():
            self._await_stop()
        elif self._thread != thread.ptid:
            self.forget()
            self._begin(thread)
        if self._thread == thread.ptid:
            self.places.setdefault(pc, {})[sp] = unknown

    def _await_stop(self) -> None:
        """Let GDB ask again at the stop: what it asks between two steps of a command says nothing of the stop."""
        if not self._awaits_stop:
            self._awaits_stop = True
            gdb.events.stop.connect(self._ask_again)

    def _ask_again(self, event: object) -> None:
        self._awaits_stop = False
        gdb.events.stop.disconnect(self._ask_again)
        gdb.invalidate_cached_frames()

    def _begin(self, thread: gdb.InferiorThread) -> None:
        innermost = gdb.newest_frame()
        architecture = innermost.architecture()
        registers = {*architecture.registers("general"), *architecture.registers("float")}
        self._saved = []
        for register in registers:
            value = innermost.read_register(register)
            if not value.is_optimized_out:
                value.fetch_lazy()
                self._saved.append((register, value))
        self._thread = thread.ptid
        for name in _ENDS:
            getattr(gdb.events, name).connect(self._end)

    def _end(self, event: object) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop all that is known of the stop."""
        self.places.clear()
        if self._thread is not None:
            self._thread, self._saved = None, []
            for name in _ENDS:
                getattr(gdb.events, name).disconnect(self._end)

    def check(self, pc: int, sp: int) -> None:
        """End the command if it has popped to the frame at ``pc`` and ``sp``, which is the innermost one now.

        :raises KeyboardInterrupt: it has.
        """
        unknown, thread = self.places[pc].get(sp), gdb.selected_thread()
        if unknown is None or thread is None or thread.ptid != self._thread or not thread.is_stopped():
            return
        saved = self._saved
        self.forget()
        gdb.post_event(lambda: self._put_back(thread, saved))
        self._report(
            f"the return is undone: the caller's {unknown} cannot be restored, which SFrame does not describe;"
            " 'set sframe mode off' leaves the frame to GDB"
        )
        raise KeyboardInterrupt

    def _put_back(self, thread: gdb.InferiorThread, saved: list[tuple[gdb.RegisterDescriptor, gdb.Value]]) -> None:
        current = gdb.selected_thread()
        try:
            if current is None or not thread.is_valid() or not thread.is_stopped():
                raise gdb.error("the program runs")
            thread.switch()
            for register, value in saved:
                _assign(register, value)
            current.switch()
        except gdb.error as error:
            self._report(f"the return could not be undone: {error}")
        finally:
            gdb.set_convenience_variable(_SAVED, None)


def _assign(register: gdb.RegisterDescriptor, value: gdb.Value) -> None:
    frame = gdb.newest_frame()
    if frame.read_register(register).format_string(format="x") != value.format_string(format="x"):
        frame.select()
        gdb.set_convenience_variable(_SAVED, value)
        gdb.parse_and_eval(f"${register.name} = ${_SAVED}")
