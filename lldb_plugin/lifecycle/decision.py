"""Decides about the frames of a thread: LLDB's own, or those of SFrame where they differ."""

from __future__ import annotations

import contextlib
import threading

import lldb

from lldb_plugin.frames.agreement import Agreement
from lldb_plugin.frames.frame_ids import told_apart
from lldb_plugin.frames.frame_list import FrameList
from lldb_plugin.frames.frame_plan import FramePlan, Shown, plan
from lldb_plugin.frames.innermost import InnermostFrames
from lldb_plugin.frames.native import NativeStack, NoFramesError
from lldb_plugin.frames.native_callers import NativeCallers
from lldb_plugin.frames.option_parser import OptionParser
from lldb_plugin.frames.scripted_frame import FrameMaker
from lldb_plugin.frames.strict_plan import NativeStackInPart, StacksDifferError, strict_plan
from lldb_plugin.interface.telling import Report
from lldb_plugin.lifecycle.session import Session
from lldb_plugin.loading import no_collection
from lldb_plugin.process.inlining import Scopes
from lldb_plugin.process.process import Process
from lldb_plugin.version import TAKES_ALL_FRAMES
from sframe_unwind.debugger.settings import OFF, Settings
from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.walk import MAX_FRAMES, Registers

_ENDED = (lldb.eStateInvalid, lldb.eStateExited, lldb.eStateDetached)
"""The states in which LLDB still has the threads of a process, but not its memory.  It is invalid while LLDB drops the
target."""


_MOST = 50_000
"""Maximum number of frames in an LLDB that takes all at each stop, unless it has as many itself: a stack overflow has
five times as many, for which LLDB takes five seconds."""


class Answers(NamedTuple):
    """The frames of a thread, some of which are not LLDB's own."""

    shown: FrameList[Shown]
    maker: FrameMaker
    should_wait: bool
    """Whether to give the frames later: LLDB may be in the middle of a step, which they would make end elsewhere."""


class Decisions:
    """The decisions about the threads of all processes.

    :param report: shows one line to the user.
    """

    def __init__(self, session: Session, report: Report) -> None:
        self._session = session
        self._report = report
        self._innermost = InnermostFrames()
        self._parser = OptionParser()

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
        target = thread.GetProcess().GetTarget()
        native, planned = _planned(process, thread, settings, Scopes(target))
        by_sframe = planned.walked[0]
        cfa = by_sframe.cfa if by_sframe is not None else None
        is_mistaken = self._innermost.is_mistaken(thread, cfa, native.cfa(native.frames[0]))
        planned = told_apart(planned, native)
        if planned.is_native(native.count):
            return None
        if planned.is_cut:
            self._report(f"this LLDB takes long for deep stacks: bt ends after {_MOST:,} frames, 'sframe bt' does not")
        return Answers(planned.shown, FrameMaker(target, process.arch, self._parser), is_mistaken)


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


def _planned(
    process: Process, thread: lldb.SBThread, settings: Settings, scopes: Scopes
) -> tuple[NativeStack, FramePlan]:
    """Return LLDB's own stack of a thread, and the frames to show."""
    if settings.strict:
        in_part = NativeStackInPart(process, thread)
        with contextlib.suppress(StacksDifferError):
            return in_part, strict_plan(process, in_part, settings, scopes)
    native = NativeStack(process, thread)
    limit = _MOST if TAKES_ALL_FRAMES and native.count < _MOST else MAX_FRAMES
    return native, plan(process, native, settings, scopes, limit)
