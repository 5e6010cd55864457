"""Decides about the frames of a thread: LLDB's own, or those of SFrame where they differ."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import lldb

from lldb_plugin.frames.agreement import Agreement
from lldb_plugin.frames.innermost import InnermostFrames
from lldb_plugin.frames.native_callers import NativeCallers
from lldb_plugin.frames.native_frames import NoFramesError
from lldb_plugin.interface.telling import Report
from lldb_plugin.lifecycle.session import Session
from lldb_plugin.loading import loading, no_collection
from lldb_plugin.process.process import Process
from sframe_unwind.debugger.settings import OFF, Settings
from sframe_unwind.errors import SFrameError
from sframe_unwind.unwind.walk import Registers

if TYPE_CHECKING:
    from lldb_plugin.lifecycle.planning import Answers, Planning

_ENDED = (lldb.eStateInvalid, lldb.eStateExited, lldb.eStateDetached)
"""The states in which LLDB still has the threads of a process, but not its memory.  It is invalid while LLDB drops the
target."""


class Decisions:
    """The decisions about the threads of all processes.

    :param report: shows one line to the user.
    """

    def __init__(self, session: Session, report: Report) -> None:
        self._session = session
        self._report = report
        self._innermost = InnermostFrames()
        self._planning: Planning | None = None

    def answers(self, thread: lldb.SBThread) -> Answers | None:
        """Return the frames of a thread; ``None``: they are LLDB's own, or there are none.  The lock is held."""
        asker = threading.get_ident()
        self._session.deciding.add(asker)
        try:
            with no_collection():
                return self._decide(thread)
        except NoFramesError:
            pass  # the process runs again
        except SFrameError as error:
            if thread.GetProcess().GetTarget().GetTriple():  # else LLDB drops the target at this moment
                self._report(str(error))
        except Exception as error:  # noqa: BLE001  # a bug of ours must not cost the user the backtrace
            self._report(f"internal error, frames left to LLDB: {type(error).__name__}: {error}")
        finally:
            self._session.deciding.discard(asker)
        return None

    def _decide(self, thread: lldb.SBThread) -> Answers | None:
        """Return the frames of a thread; ``None``: they are exactly LLDB's own.

        :raises SFrameError: SFrame has no architecture for the process.
        """
        settings = self._session.settings  # a command can change them meanwhile, in another thread
        if thread.GetProcess().GetState() in _ENDED:
            return None
        modules = self._session.modules(thread.GetProcess())
        modules.judge()
        if settings.mode == OFF or not modules.can_change_stacks(settings):
            return None
        inner = thread.GetFrameAtIndex(0)
        if not inner.IsValid():
            return None
        process = self._session.process(thread.GetProcess())
        registers = Registers(inner.GetPC(), inner.GetSP(), inner.GetFP())
        # In the entry code of a kernel, LLDB ends the stack or guesses a caller.
        if (
            not settings.strict
            and process.kernel_at(registers.pc) is None
            and _lldb_agrees(process, thread, inner, registers, settings)
        ):
            self._innermost.is_mistaken(thread, inner.GetCFA(), inner.GetCFA())
            return None
        return self._planner().answers(process, thread, settings)

    def _planner(self) -> Planning:
        if self._planning is None:
            with loading():
                from lldb_plugin.lifecycle.planning import Planning

            self._planning = Planning(self._innermost, self._report)
        return self._planning


def _lldb_agrees(
    process: Process, thread: lldb.SBThread, inner: lldb.SBFrame, registers: Registers, settings: Settings
) -> bool:
    """Return whether LLDB's own stack of a thread is certainly SFrame's.

    :param inner: the innermost frame, which has the registers.
    """
    agreement = Agreement(
        shared=process.shared[settings.mode],
        arch=process.arch,
        read=process.read,
        read_register=process.register_reader(inner),
        pac_mask=process.pac_mask,
        callers=NativeCallers(thread),
    )
    return agreement.holds(registers)
