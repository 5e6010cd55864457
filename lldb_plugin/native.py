"""LLDB's own frames of one thread, read once into plain values.

They are read where LLDB allows it (a provider's constructor, a command).  Touching an SBFrame while a provider is asked
for its frames deadlocks LLDB 23.1.0, so nothing of LLDB's is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable, NamedTuple

import lldb

from lldb_plugin.process import Process
from sframe_unwind.errors import StepError
from sframe_unwind.memory import ReadRegister
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import FallbackUnwinder, Registers, UnwindResult

NAME = "lldb"


class NativeFrame(NamedTuple):
    """One frame with registers of its own, and what LLDB shows just inside it."""

    indexes: tuple[int, ...]
    """LLDB's indexes of the frames of tail-called and inlined functions, from the inside out, and of the frame."""
    pc: int
    sp: int | None
    fp: int | None
    cfa: int | None
    """``None`` where LLDB does not know it."""


class NativeStack:
    """The frames of a thread as LLDB's own unwinder gives them.

    :param frames: ``SBThread`` or ``SBFrameList``; used during construction and by :meth:`other`.
    """

    def __init__(self, process: Process, frames: lldb.SBFrameList | lldb.SBThread) -> None:
        self._process = process
        self._frames = frames
        self.frames = tuple(_physical(_iterate(frames)))
        self.by_registers: dict[tuple[int, int | None], int] = {
            (frame.pc, frame.sp): number for number, frame in enumerate(self.frames)
        }
        self._handed: dict[int, UnwindResult | None] = {}
        inner = self.frames[0]
        self.innermost = Registers(inner.pc, inner.sp or 0, inner.fp or 0)
        self.read_register = _Remembered(process.register_reader(self._frame(0)))

    def other(self) -> FallbackUnwinder:
        """Return the stack as the unwinder that SFrame's walk hands over to."""
        return FallbackUnwinder(NAME, self._unwind)

    def has(self, registers: Registers) -> bool:
        """Return whether a frame is one of LLDB's."""
        return (registers.pc, registers.sp) in self.by_registers

    def release(self) -> None:
        """Let go of LLDB's objects; what has been asked for so far can be asked for again."""
        self._frames = None
        self.read_register.release()
        for handed in self._handed.values():
            if handed is not None and isinstance(handed.read_register, _Remembered):
                handed.read_register.release()

    def _frame(self, number: int) -> lldb.SBFrame:
        return self._frames.GetFrameAtIndex(self.frames[number].indexes[-1])

    def _unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None
    ) -> UnwindResult | None:
        number = self.by_registers.get((registers.pc, registers.sp))
        if number is None or number + 1 >= len(self.frames):
            return None
        if number not in self._handed:
            self._handed[number] = self._hand(number)
        return self._handed[number]

    def _hand(self, number: int) -> UnwindResult | None:
        caller = self.frames[number + 1]
        if caller.sp is None:
            return None
        signal = self._process.is_trampoline(self.frames[number].pc)
        cfa = caller.sp - self._process.arch.sp_from_cfa
        reader = None
        if signal and self._frames is not None:
            reader = _Remembered(self._process.register_reader(self._frame(number + 1)))
        return UnwindResult(Caller(cfa, caller.pc, caller.sp, caller.fp or 0), signal, reader)


class _Remembered:
    """Registers by number, each asked for once."""

    def __init__(self, read_register: ReadRegister) -> None:
        self._read: ReadRegister | None = read_register
        self._known: dict[int, int] = {}

    def release(self) -> None:
        self._read = None

    def __call__(self, number: int) -> int:
        if number not in self._known:
            if self._read is None:
                raise StepError(f"DWARF register {number} was not asked for in time")
            self._known[number] = self._read(number)
        return self._known[number]


def _iterate(frames: lldb.SBFrameList | lldb.SBThread) -> Iterator[lldb.SBFrame]:
    size: Callable[[], int] = frames.GetSize if hasattr(frames, "GetSize") else frames.GetNumFrames
    return (frames.GetFrameAtIndex(index) for index in range(size()))


def _physical(frames: Iterator[lldb.SBFrame]) -> Iterator[NativeFrame]:
    indexes: list[int] = []
    inner: lldb.SBFrame | None = None
    pc = 0
    for index, frame in enumerate(frames):
        if frame.IsArtificial():
            # A function that ended in a tail call: LLDB knows from the debug information that it was there.
            if inner is not None:  # LLDB drops the frame that inlined ones are in when it is called so
                yield _native(indexes, pc, inner)
                indexes, inner = [], None
            indexes.append(index)
            continue
        if inner is None:
            pc = frame.GetPC()  # behind an inlined function LLDB gives the place where it was inlined instead
        inner = frame
        indexes.append(index)
        if not frame.IsInlined():
            yield _native(indexes, pc, frame)
            indexes, inner = [], None


def _native(indexes: list[int], pc: int, frame: lldb.SBFrame) -> NativeFrame:
    return NativeFrame(tuple(indexes), pc, _known(frame.GetSP()), _known(frame.GetFP()), _known(frame.GetCFA()))


def _known(address: int) -> int | None:
    return None if address == lldb.LLDB_INVALID_ADDRESS else address
