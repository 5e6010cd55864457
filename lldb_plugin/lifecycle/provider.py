"""The scripted frame provider: LLDB asks whether it applies whenever it lists a thread's frames.

All work is done before this question is answered.  If LLDB's own unwinder gives the same stack as SFrame, the provider
does not apply: the frames are then LLDB's own in every respect, and LLDB unwinds them only when they are needed.  If
the provider applies, LLDB unwinds its own whole stack for each list, so nothing can be lazy any more.

The locks also require this.  While LLDB asks for frames, it holds locks that its own interface needs: access to a frame
in ``get_frame_at_index`` always deadlocks LLDB 23.1.0, and reading memory or resolving an address sometimes deadlocks
23.1.4.  LLDB holds no such lock yet when it asks whether the provider applies.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator
from typing import ClassVar, NamedTuple, Union

import lldb
from lldb.plugins.scripted_frame_provider import ScriptedFrameProvider

from lldb_plugin.frames import innermost
from lldb_plugin.frames.agreement import Agreement
from lldb_plugin.frames.frame_ids import told_apart
from lldb_plugin.frames.frame_plan import FramePlan, Shown, plan
from lldb_plugin.frames.kept_frames import Moment, moment_of
from lldb_plugin.frames.native import NativeStack, NoFramesError
from lldb_plugin.frames.native_callers import NativeCallers
from lldb_plugin.frames.scripted_frame import FrameMaker, SFrameFrame
from lldb_plugin.frames.strict_plan import NativeStackInPart, StacksDifferError, strict_plan
from lldb_plugin.interface.lock import acquire
from lldb_plugin.interface.telling import report, tell
from lldb_plugin.lifecycle import invalidate, renewal, stop_hooks
from lldb_plugin.process.inlining import Scopes
from lldb_plugin.process.process import Process
from lldb_plugin.session import SESSION
from lldb_plugin.version import CAN_RENEW
from sframe_unwind.debugger.settings import OFF, Settings
from sframe_unwind.errors import SFrameError
from sframe_unwind.unwind.walk import Registers

_PATIENCE = 0.001
"""Seconds to wait for LLDB's lock on the target: for a call in another thread that does not wait for these frames."""

Answer = Union[int, SFrameFrame]
"""LLDB's representation of a frame: the index of its own frame, or a frame of a script."""

_decided: dict[int, _Decided] = {}
"""By thread of LLDB, what the provider that this thread is about to create gets.

Not :class:`threading.local`: its contents for a thread that Python did not create are lost when a call returns.
"""

_used_by_others: set[int] = set()
"""The processes in which a thread with LLDB's lock uses the frames that are to be replaced."""

_ENDED = (lldb.eStateInvalid, lldb.eStateExited, lldb.eStateDetached)
"""The states of a process whose threads LLDB still has, and whose memory is gone; *invalid*: LLDB drops its target."""


class SFrameFrameProvider(ScriptedFrameProvider):
    """Provides SFrame's frames, and all of LLDB's own where these are the same or SFrame has none.

    There is a separate class for each target (:func:`for_target`): LLDB passes a thread with its question, and asking
    the thread for its target waits for the target's lock.
    """

    target: ClassVar[lldb.SBTarget]

    def __init__(self, input_frames: lldb.SBFrameList, args: lldb.SBStructuredData) -> None:
        # The base class's constructor is not called: it waits for locks.
        decided = _decided.pop(threading.get_ident(), None)
        self._shown = None if decided is None else decided.shown
        self._maker = None if decided is None else decided.maker
        if decided is not None:
            SESSION.kept.keep(decided.moment, input_frames)

    @classmethod
    def applies_to_thread(cls, thread: lldb.SBThread) -> bool:
        """Return whether some frame of the thread is SFrame's and not LLDB's own; the frames are then known."""
        asker = threading.get_ident()
        _decided.pop(asker, None)
        # Access to the innermost frame makes LLDB 22 ask again, and that call lists LLDB's own frames.
        if SESSION.settings.mode == OFF or asker in SESSION.deciding:
            return False
        process = cls.target.GetProcess()
        if SESSION.leaves_frames_alone(process):
            return False
        mutex = cls.target.GetAPIMutex()
        # The thread that holds the lock may be waiting for these frames.
        if not acquire(mutex, _PATIENCE):
            _used_by_others.add(process.GetUniqueID())
            renewal.later(cls.target, thread, cls._renew, waits=CAN_RENEW)
            stop_hooks.need(cls.target)
            return False
        try:
            moment = moment_of(thread)
            SESSION.kept.drop(moment)
            renewal.done(cls.target, thread)
            answers = _answers(thread)
            if answers is not None:
                stop_hooks.need(cls.target)
                if answers.should_wait:
                    renewal.later(cls.target, thread, cls._renew, waits=False)
                else:
                    _decided[asker] = _Decided(answers.shown, answers.maker, moment)
        finally:
            mutex.unlock()
        return asker in _decided

    @classmethod
    def _renew(cls, threads: list[lldb.SBThread]) -> None:
        """Make LLDB ask again for the frames of the target if those of some threads are SFrame's.

        LLDB 22 keeps its own frames if another thread uses them; one line reports it at each stop where that happens.
        """
        process = cls.target.GetProcess().GetUniqueID()
        others = process in _used_by_others
        _used_by_others.discard(process)
        if all(_answers(thread) is None for thread in threads):
            return
        if others and not CAN_RENEW:
            tell("another thread had the lock of LLDB 22: the frames at this stop are LLDB's own")
        elif not invalidate.forget_frames(cls.target):
            report("this LLDB keeps the frames that it has shown; SFrame's are shown at the next stop")

    @staticmethod
    def get_description() -> str:
        """Return what ``target frame-provider list`` shows."""
        return "Stack frames from SFrame; see 'help sframe'"

    def get_frame_at_index(self, index: int) -> Answer | None:
        """Return the frame at an index; ``None``: the index is after the last frame."""
        if self._shown is None or self._maker is None:
            return index
        if index >= len(self._shown):
            return None
        shown = self._shown[index]
        # Made when it is asked for: a stack overflow has 100,000 frames, of which few are looked at.
        return shown if isinstance(shown, int) else self._maker.make(index, *shown)


def for_target(target: lldb.SBTarget, number: int) -> type[SFrameFrameProvider]:
    """Return the provider's class for one target."""
    # LLDB refuses a class that inherits the methods that the base class declares abstract.
    own = {name: vars(SFrameFrameProvider)[name] for name in ("__init__", "get_description", "get_frame_at_index")}
    return type(f"{SFrameFrameProvider.__name__}{number}", (SFrameFrameProvider,), {"target": target, **own})


class _Decided(NamedTuple):
    """What a provider gets when it is made."""

    shown: tuple[Shown, ...]
    maker: FrameMaker
    moment: Moment


class _Answers(NamedTuple):
    """The frames of a thread, some of which are not LLDB's own."""

    shown: tuple[Shown, ...]
    maker: FrameMaker
    should_wait: bool
    """LLDB may be in the middle of a step, which these frames would lead astray."""


def _answers(thread: lldb.SBThread) -> _Answers | None:
    """Return the frames of a thread; ``None``: they are LLDB's own, or there are none.  The lock is held."""
    asker = threading.get_ident()
    SESSION.deciding.add(asker)
    try:
        with _no_collection():
            return _decide(thread)
    except NoFramesError:
        pass  # the process runs again
    except SFrameError as error:
        report(str(error))
    except Exception as error:  # noqa: BLE001  # a bug of ours must not cost the user the backtrace
        report(f"internal error, frames left to LLDB: {type(error).__name__}: {error}")
    finally:
        SESSION.deciding.discard(asker)
    return None


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Do not look for cyclic garbage: a deep stack is tens of thousands of objects without cycles.

    They would start the collector again and again, which took a quarter of the time of a decision.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _decide(thread: lldb.SBThread) -> _Answers | None:
    """Return the frames of a thread; ``None``: they are exactly LLDB's own.

    :raises SFrameError: SFrame has no architecture for the process.
    """
    settings = SESSION.settings  # a command can change them meanwhile, in another thread
    if thread.GetProcess().GetState() in _ENDED:
        return None
    modules = SESSION.modules(thread.GetProcess())
    modules.judge()
    if settings.mode == OFF or not modules.can_change_stacks(settings):
        return None
    inner = thread.GetFrameAtIndex(0)
    if not inner.IsValid():
        return None
    process = SESSION.process(thread.GetProcess())
    registers = Registers(inner.GetPC(), inner.GetSP(), inner.GetFP())
    # LLDB ends the stacks of kernels at entry code, or guesses.
    if (
        not settings.strict
        and process.kernel_at(registers.pc) is None
        and _lldb_agrees(process, thread, inner, registers, settings)
    ):
        innermost.is_mistaken(thread, inner.GetCFA(), inner.GetCFA())
        return None
    target = thread.GetProcess().GetTarget()
    native, planned = _planned(process, thread, settings, Scopes(target))
    by_sframe = planned.walked[0]
    cfa = by_sframe.cfa if by_sframe is not None else None
    is_mistaken = innermost.is_mistaken(thread, cfa, native.cfa(native.frames[0]))
    planned = told_apart(planned, native)
    if planned.is_native(native.count):
        return None
    return _Answers(planned.shown, FrameMaker(target, process.arch), is_mistaken)


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
    return native, plan(process, native, settings, scopes)
