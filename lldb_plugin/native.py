"""LLDB's own stack of one thread, as the unwinder for the frames that SFrame does not cover.

Frames are read when LLDB permits it: in ``applies_to_thread``, or in a command.  Access to an SBFrame while LLDB asks a
provider for its frames deadlocks LLDB 23.1.0.
"""

from __future__ import annotations

import functools
import itertools

from lldb_plugin.native_frames import Frames, NativeFrame, frames_from
from lldb_plugin.process import Process
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadRegister
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import FallbackUnwinder, Registers, UnwindResult

NAME = "lldb"


class NoFramesError(SFrameError):
    """The thread has no frames, for example because its process runs."""


class NativeStack:
    """The frames of a thread by LLDB's own unwinder.

    :param frames: LLDB's own frames, during the life of this object.
    :param limit: maximum number of groups of frames; ``None``: all.
    """

    def __init__(self, process: Process, frames: Frames, limit: int | None = None) -> None:
        self._process = process
        self._listed = frames
        self.frames = tuple(itertools.islice(frames_from(frames, 0), limit))
        if not self.frames:
            raise NoFramesError("the thread has no frames")
        self._numbers = {(frame.pc, frame.sp): number for number, frame in enumerate(self.frames)}
        self._results: dict[NativeFrame, UnwindResult | None] = {}
        inner = self.frames[0]
        self.innermost = Registers(inner.pc, inner.sp or 0, inner.fp or 0)
        self.read_register = self._register_reader(inner)

    @property
    def count(self) -> int:
        """The number of frames that LLDB shows."""
        return sum(len(frame.indexes) for frame in self.frames)

    def find(self, pc: int, sp: int) -> NativeFrame | None:
        """Return the frame with a pc and SP; ``None``: there is none."""
        number = self._numbers.get((pc, sp))
        return None if number is None else self.frames[number]

    def caller(self, frame: NativeFrame) -> NativeFrame | None:
        """Return the next frame further out; ``None``: there is none."""
        number = self._numbers[frame.pc, frame.sp] + 1
        return self.frames[number] if number < len(self.frames) else None

    def other(self) -> FallbackUnwinder:
        """Return this stack as the unwinder for frames that SFrame does not cover."""
        return FallbackUnwinder(NAME, self._unwind)

    def _unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None
    ) -> UnwindResult | None:
        frame = self.find(registers.pc, registers.sp)
        if frame is None:
            return None
        if frame not in self._results:
            caller = self.caller(frame)
            self._results[frame] = None if caller is None else self._result(frame, caller)
        return self._results[frame]

    def _result(self, frame: NativeFrame, caller: NativeFrame) -> UnwindResult | None:
        if caller.sp is None:
            return None
        signal = self._process.is_trampoline(frame.pc)
        cfa = caller.sp - self._process.arch.sp_from_cfa
        reader = self._register_reader(caller) if signal else None
        return UnwindResult(Caller(cfa, caller.pc, caller.sp, caller.fp or 0), signal, reader)

    def _register_reader(self, frame: NativeFrame) -> ReadRegister:
        """Return the function that reads registers of a frame, each once."""
        return functools.cache(self._process.register_reader(self._listed.GetFrameAtIndex(frame.indexes[-1])))
