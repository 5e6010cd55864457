"""GDB's frames as the core's stacks, in either mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import gdb

from gdb_plugin.process import Process
from gdb_plugin.session import Session
from gdb_plugin.settings import ALWAYS, OFF, Settings
from gdb_plugin.unwinder import Recorder, SFrameUnwinder
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.report.compare import Comparison, compare
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.stack import ShownFrame, Stack
from sframe_unwind.unwind.modules import Found, NoData

NATIVE = "gdb"
_BEYOND = 100
"""So many frames more than SFrame's are worth showing of GDB's own."""
_SHARED = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)
"""Frames that GDB makes up from debug information; nobody unwinds them."""


class Stacks:
    """Takes the selected thread's stack as one unwinder or the other gives it."""

    def __init__(self, unwinder: SFrameUnwinder, session: Session) -> None:
        self._unwinder = unwinder
        self._session = session

    def by_sframe(self, limit: int | None = None) -> Stack:
        """Return the stack in mode ``always``.

        :param limit: how many frames at the most.
        :raises gdb.error: there is no stack.
        """
        return self._stack(ALWAYS, limit)

    def native(self, limit: int | None = None) -> Stack:
        """Return the stack in mode ``off``."""
        return self._stack(OFF, limit)

    def comparison(self) -> Comparison:
        """Return both, compared."""
        sframe = self.by_sframe()
        # Without unwind data GDB's own unwinder can guess on for ever.
        return compare(self.native(len(sframe.frames) + _BEYOND), sframe)

    def process(self) -> Process:
        """Return the current process.

        :raises gdb.error: there is no stack, or SFrame has no ABI for it.
        """
        frame = gdb.newest_frame()
        process = self._session.current(frame, in_command=True)
        if process is None:
            raise gdb.error(f"SFrame has no ABI for architecture {frame.architecture().name()}")
        return process

    def selected(self) -> tuple[int, FrameContext]:
        """Return the selected frame's lookup address and what explains it.

        :raises gdb.error: there is no stack.
        """
        process = self.process()
        frame = gdb.selected_frame()
        while frame.type() in _SHARED and frame.older() is not None:
            frame = frame.older()
        interrupted = _is_interrupted(frame)
        here = FrameContext(
            _register(frame, process.registers(frame).sp) or 0,
            _register(frame, process.registers(frame).fp) or 0,
            process.read_word,
            process.registers(frame).reader(frame) if interrupted else None,
            process.registers(frame).pac_mask(frame),
        )
        return frame.pc() if interrupted else frame.pc() - 1, here

    @contextmanager
    def _by(self, settings: Settings, recorder: Recorder) -> Iterator[None]:
        """Unwind with other settings for a while; the selected frame stays selected."""
        unwinder = self._unwinder
        level = gdb.selected_frame().level()
        before = unwinder.settings
        unwinder.set(settings, recorder)
        try:
            yield
        finally:
            unwinder.set(before)
            with suppress(gdb.error):  # GDB's own unwinder may not even get to the innermost frame
                frame = next(islice(_chain(gdb.newest_frame()), level, None), None)
                if frame is not None:
                    frame.select()

    def _stack(self, mode: str, limit: int | None) -> Stack:
        process = self.process()
        recorder = Recorder()
        frames: list[ShownFrame] = []
        end = ""
        with self._by(Settings(mode, strict=True), recorder):
            frame: gdb.Frame | None = None
            try:
                frame = _physical(gdb.newest_frame())
            except gdb.error as error:
                end = str(error)
            while frame is not None and not end:
                if len(frames) == limit:
                    end = f"only the innermost {limit} frames were asked for"
                    break
                outer = None
                try:
                    outer = _physical(frame.older())
                except gdb.error as error:
                    end = str(error)
                try:
                    shown = self._shown(process, recorder, frame, outer, len(frames))
                except gdb.error as error:
                    end = str(error)
                    break
                if outer is None:
                    try:
                        shown = self._shown(process, recorder, frame, _behind_limits(frame), len(frames))
                        end = end or self._end(process, recorder, frame)
                    except gdb.error as error:  # GDB 13 loses some frames when its settings change
                        end = end or str(error)
                frames.append(shown)
                frame = outer
        return _titled(frames, end)

    def _shown(
        self, process: Process, recorder: Recorder, frame: gdb.Frame, outer: gdb.Frame | None, level: int
    ) -> ShownFrame:
        arch = process.arch
        pc = frame.pc()
        registers = process.registers(frame)
        sp = _register(frame, registers.sp)
        cfa = None
        if outer is not None:
            outer_sp = _register(outer, process.registers(outer).sp)
            cfa = None if outer_sp is None else outer_sp - arch.sp_from_cfa
        module = process.modules.find(pc)
        return ShownFrame(
            level,
            pc,
            cfa,
            _register(frame, registers.fp),
            frame.name() or process.run_time_name(pc) or process.run_time_name(pc - 1),
            _place(frame, module.name if module else ""),
            module.name if module else "",
            "sframe" if (pc, sp) in recorder.claimed else NATIVE if outer is not None else "",
        )

    def _end(self, process: Process, recorder: Recorder, frame: gdb.Frame) -> str:
        """Return why GDB shows nothing beyond a frame."""
        by_sframe = self._by_sframe(process, recorder, frame) if self._unwinder.settings.mode == ALWAYS else ""
        reason = frame.unwind_stop_reason()
        if reason != gdb.FRAME_UNWIND_NO_REASON:
            text = str(gdb.frame_stop_reason_string(reason))
            return f"{text}; SFrame: {by_sframe}" if by_sframe else text
        if frame.name() == "main" and not gdb.parameter("backtrace past-main"):
            return "main; GDB goes on with 'set backtrace past-main on'"
        return by_sframe or "the outermost frame for GDB; 'show backtrace' lists its limits"

    def _by_sframe(self, process: Process, recorder: Recorder, frame: gdb.Frame) -> str:
        """Return what SFrame has to say about a frame's having no caller."""
        pc = frame.pc()
        refused = recorder.refused.get((pc, _register(frame, process.registers(frame).sp) or 0))
        if refused is not None:
            return refused
        answer = process.modules.answers[pc if _is_interrupted(frame) else pc - 1]
        if isinstance(answer, NoData):
            return answer.reason
        if isinstance(answer, Found) and answer.rule.ra_undefined:
            return "the return address is undefined, this is the outermost frame"
        return ""


def _is_interrupted(frame: gdb.Frame) -> bool:
    """Return whether all registers of a frame are live, so that its pc is no return address."""
    inner = frame.newer()
    while inner is not None and inner.type() in _SHARED:
        inner = inner.newer()
    return inner is None or bool(inner.type() == gdb.SIGTRAMP_FRAME)


def _titled(frames: list[ShownFrame], end: str) -> Stack:
    thread = gdb.selected_thread()
    if thread is None:
        return Stack("0", "Core without threads", tuple(frames), end)
    number = f"{thread.inferior.num}.{thread.num}" if len(gdb.inferiors()) > 1 else str(thread.num)
    return Stack(number, f'Thread {number} "{thread.name or ""}"', tuple(frames), end)


def _chain(frame: gdb.Frame | None) -> Iterator[gdb.Frame]:
    while frame is not None:
        yield frame
        frame = frame.older()


def _physical(frame: gdb.Frame | None) -> gdb.Frame | None:
    """Return the first frame from here outward that has registers of its own."""
    return next((frame for frame in _chain(frame) if frame.type() not in _SHARED), None)


def _behind_limits(frame: gdb.Frame) -> gdb.Frame | None:
    """Return the caller of a frame where only a setting of the user's hides it: its SP tells the frame's CFA."""
    settings = [name for name in ("past-main", "past-entry") if not gdb.parameter(f"backtrace {name}")]
    try:
        for name in settings:
            gdb.execute(f"set backtrace {name} on", to_string=True)
        return _physical(frame.older())
    finally:
        for name in settings:
            gdb.execute(f"set backtrace {name} off", to_string=True)


def _register(frame: gdb.Frame, descriptor: Any) -> int | None:
    try:
        return int(frame.read_register(descriptor)) & ADDRESS_MASK
    except gdb.error:
        return None


def _place(frame: gdb.Frame, module: str) -> str:
    line = frame.find_sal()
    if line.symtab is not None and line.line:
        return f"{Path(line.symtab.filename).name}:{line.line}"
    return Path(module).name
