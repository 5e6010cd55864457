"""The scripted frame provider: LLDB asks whether it applies whenever it makes its list of a thread's frames.

All work is done in answering that question.  Where LLDB's own unwinder gives the stack that SFrame gives, the provider
does not apply: LLDB's frames are then LLDB's own in every respect, and unwound when somebody looks at them.  Once the
provider applies, LLDB unwinds its own whole stack for each list, so that nothing can be lazy any more.

The same goes for where the work is done.  While frames are asked for, LLDB holds locks that its own interface wants:
touching a frame in ``get_frame_at_index`` deadlocks LLDB 23.1.0 always, reading memory or resolving an address 23.1.4
at times.  There is no such lock yet when LLDB asks whether the provider applies.
"""

from __future__ import annotations

import threading
from typing import ClassVar, Union

import lldb
from lldb.plugins.scripted_frame_provider import ScriptedFrameProvider

from lldb_plugin import invalidate, renewal, stop_hooks
from lldb_plugin.agreement import lldb_agrees
from lldb_plugin.frame_plan import plan
from lldb_plugin.inlining import Scopes
from lldb_plugin.lock import acquire
from lldb_plugin.native import NativeStack, NoFramesError
from lldb_plugin.scripted_frame import FrameMaker, SFrameFrame
from lldb_plugin.session import SESSION, tell
from lldb_plugin.version import MAJOR
from sframe_unwind.debugger.settings import OFF
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import WordReader
from sframe_unwind.unwind.walk import Registers

_PATIENCE = 0.001
"""Seconds to wait for LLDB's lock on the target: for a call of another thread that does not wait for these frames."""


_CAN_RENEW = MAJOR >= 23
"""LLDB 22 crashes where its frames are forgotten while its event thread prints one of them."""

Answer = Union[int, SFrameFrame]
"""What LLDB takes for a frame: its own, by its index, or one of a script."""

_decided: dict[int, tuple[Answer, ...]] = {}
"""By thread of LLDB's: the frames for the provider that this thread is about to make.

Not :class:`threading.local`: what that holds for a thread which Python did not make is gone when its call returns.
"""


class SFrameFrameProvider(ScriptedFrameProvider):
    """Frames by SFrame; LLDB's own, complete, where they are the same or SFrame has none.

    There is a class of its own for each target (:func:`for_target`): what LLDB gives with its question is a thread,
    and asking that for its target waits for the target's lock.
    """

    target: ClassVar[lldb.SBTarget]

    def __init__(self, input_frames: lldb.SBFrameList, args: lldb.SBStructuredData) -> None:
        # Not the base class's constructor: it waits for locks.
        self._answers = _decided.pop(threading.get_ident(), None)

    @classmethod
    def applies_to_thread(cls, thread: lldb.SBThread) -> bool:
        """Return whether some frame of the thread is SFrame's and not LLDB's own; what they are, is then known."""
        asker = threading.get_ident()
        _decided.pop(asker, None)
        # To look at the innermost frame makes LLDB 22 ask again, which then makes the list of LLDB's own frames.
        if SESSION.settings.mode == OFF or asker in SESSION.deciding:
            return False
        if SESSION.leaves_frames_alone(cls.target.GetProcess()):
            return False
        mutex = cls.target.GetAPIMutex()
        # Whoever holds the lock may be waiting for these frames.
        if not acquire(mutex, _PATIENCE):
            renewal.later(cls.target, thread, cls._renew, waits=_CAN_RENEW)
            stop_hooks.need(cls.target, lldb.SBExecutionContext(thread))
            return False
        try:
            renewal.done(cls.target, thread)
            answers = _answers(thread)
            if answers is not None:
                _decided[asker] = answers
                stop_hooks.need(cls.target, lldb.SBExecutionContext(thread))
        finally:
            mutex.unlock()
        return asker in _decided

    @classmethod
    def _renew(cls, threads: list[lldb.SBThread]) -> None:
        """Make LLDB ask again for the frames of the target if those of some threads are SFrame's.

        LLDB 22 keeps its own; one line says so at each stop where that happens.
        """
        if all(_answers(thread) is None for thread in threads):
            return
        if not _CAN_RENEW:
            tell("another thread had the lock of LLDB 22: the frames at this stop are LLDB's own")
        elif not invalidate.forget_frames(cls.target):
            SESSION.report("this LLDB keeps the frames that it has shown; SFrame's are shown at the next stop")

    @staticmethod
    def get_description() -> str:
        """Return what ``target frame-provider list`` shows."""
        return "Stack frames from SFrame; see 'help sframe'"

    def get_frame_at_index(self, index: int) -> Answer | None:
        """Return the frame at an index, ``None`` behind the last."""
        if self._answers is None:
            return index
        return self._answers[index] if index < len(self._answers) else None


def for_target(target: lldb.SBTarget, number: int) -> type[SFrameFrameProvider]:
    """Return the provider's class for one target."""
    # LLDB refuses a class that inherits the methods which the base class declares abstract.
    own = {name: vars(SFrameFrameProvider)[name] for name in ("__init__", "get_description", "get_frame_at_index")}
    return type(f"{SFrameFrameProvider.__name__}{number}", (SFrameFrameProvider,), {"target": target, **own})


def _answers(thread: lldb.SBThread) -> tuple[Answer, ...] | None:
    """Return the frames of a thread, ``None`` where they are LLDB's own or none can be had; the lock is held."""
    asker = threading.get_ident()
    SESSION.deciding.add(asker)
    try:
        return _decide(thread)
    except NoFramesError:
        pass  # the process has gone on meanwhile
    except SFrameError as error:
        SESSION.report(str(error))
    except Exception as error:  # noqa: BLE001  # a bug of ours must not cost the user the backtrace
        SESSION.report(f"internal error, frames left to LLDB: {type(error).__name__}: {error}")
    finally:
        SESSION.deciding.discard(asker)
    return None


def _decide(thread: lldb.SBThread) -> tuple[Answer, ...] | None:
    """Return the frames of a thread, ``None`` where they are just LLDB's own.

    :raises SFrameError: SFrame has no architecture for the process.
    """
    modules = SESSION.modules(thread.GetProcess())
    SESSION.set_native(thread, None)
    modules.judge()
    if not modules.can_change_stacks(SESSION.settings):
        return None
    inner = thread.GetFrameAtIndex(0)
    if not inner.IsValid():
        return None
    process = SESSION.process(thread.GetProcess())
    registers = Registers(inner.GetPC(), inner.GetSP(), inner.GetFP())
    settings = SESSION.settings
    # LLDB ends the stacks of kernels at entry code, or guesses.
    if (
        not settings.strict
        and process.kernel_at(registers.pc) is None
        and lldb_agrees(
            process.shared[settings.mode],
            process.arch,
            registers,
            WordReader(process.read, process.arch.byteorder),
            process.register_reader(inner),
            process.pac_mask,
        )
    ):
        return None
    native = NativeStack(process, thread)
    target = thread.GetProcess().GetTarget()
    planned = plan(process, native, settings, Scopes(target))
    native.release()
    if planned.is_native(native.count):
        return None
    SESSION.set_native(thread, native)
    maker = FrameMaker(target, process.arch)
    return tuple(
        shown if isinstance(shown, int) else maker.make(index, *shown) for index, shown in enumerate(planned.shown)
    )
