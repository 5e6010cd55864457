"""LLDB's own frames of one thread, read once into plain values.

They are read when LLDB permits it: in ``applies_to_thread``, or in a command.  Access to an SBFrame while LLDB asks a
provider for its frames deadlocks LLDB 23.1.0, so no object of LLDB is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import lldb

from lldb_plugin.process import Process
from sframe_unwind.errors import SFrameError, StepError
from sframe_unwind.memory import ReadRegister
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import FallbackUnwinder, Registers, UnwindResult

NAME = "lldb"


class NoFramesError(SFrameError):
    """The thread has no frames, for example because its process runs."""


class NativeFrame(NamedTuple):
    """One frame with registers of its own, and LLDB's frames of the functions inlined and tail-called in it."""

    indexes: tuple[int, ...]
    """LLDB's indexes of these frames, from the innermost outward: tail-called and inlined functions, and the frame."""
    pc: int
    sp: int | None
    fp: int | None
    cfa: int | None
    """``None``: LLDB does not know it."""
    tail_calls: int
    """The number of frames of tail-called functions among them; these are the innermost."""


class NativeStack:
    """The frames of a thread by LLDB's own unwinder.

    They are read by index until there is none.  ``GetNumFrames`` returns the same number for a stopped thread, but
    while LLDB steps it can return 0 although there are frames.

    :param thread: a thread whose frames are currently LLDB's own; used during construction and by :meth:`other`.
    :param limit: maximum number of groups of frames; ``None``: all.
    """

    def __init__(self, process: Process, thread: lldb.SBThread, limit: int | None = None) -> None:
        self._process = process
        self._thread: lldb.SBThread | None = thread
        self.frames = tuple(itertools.islice(_physical(_iterate(thread)), limit))
        if not self.frames:
            raise NoFramesError("the thread has no frames")
        self.by_registers: dict[tuple[int, int | None], int] = {
            (frame.pc, frame.sp): number for number, frame in enumerate(self.frames)
        }
        self._results: dict[int, UnwindResult | None] = {}
        inner = self.frames[0]
        self.innermost = Registers(inner.pc, inner.sp or 0, inner.fp or 0)
        self.read_register = _Remembered(process.register_reader(thread.GetFrameAtIndex(0)))

    @property
    def count(self) -> int:
        """The number of frames that LLDB shows."""
        return sum(len(frame.indexes) for frame in self.frames)

    def other(self) -> FallbackUnwinder:
        """Return this stack as the unwinder for frames that SFrame does not cover."""
        return FallbackUnwinder(NAME, self._unwind)

    def release(self) -> None:
        """Release LLDB's objects; values that were read before remain available."""
        self._thread = None
        self.read_register.release()
        for result in self._results.values():
            if result is not None and isinstance(result.read_register, _Remembered):
                result.read_register.release()

    def _unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None
    ) -> UnwindResult | None:
        number = self.by_registers.get((registers.pc, registers.sp))
        if number is None or number + 1 >= len(self.frames):
            return None
        if number not in self._results:
            self._results[number] = self._result(number)
        return self._results[number]

    def _result(self, number: int) -> UnwindResult | None:
        caller = self.frames[number + 1]
        if caller.sp is None:
            return None
        signal = self._process.is_trampoline(self.frames[number].pc)
        cfa = caller.sp - self._process.arch.sp_from_cfa
        reader = None
        if signal and self._thread is not None:
            frame = self._thread.GetFrameAtIndex(caller.indexes[-1])
            reader = _Remembered(self._process.register_reader(frame))
        return UnwindResult(Caller(cfa, caller.pc, caller.sp, caller.fp or 0), signal, reader)


class _Remembered:
    """Registers by number, each read once."""

    def __init__(self, read_register: ReadRegister) -> None:
        self._read: ReadRegister | None = read_register
        self._known: dict[int, int] = {}

    def release(self) -> None:
        self._read = None

    def __call__(self, number: int) -> int:
        if number not in self._known:
            if self._read is None:
                raise StepError(f"DWARF register {number} was not read in time")
            self._known[number] = self._read(number)
        return self._known[number]


class _Listed(NamedTuple):
    """One frame in LLDB's list."""

    frame: lldb.SBFrame
    pc: int
    sp: int


def _iterate(thread: lldb.SBThread) -> Iterator[_Listed]:
    for index in itertools.count():
        frame = thread.GetFrameAtIndex(index)
        pc = frame.GetPC()
        if pc == lldb.LLDB_INVALID_ADDRESS:  # there is no such frame
            return
        yield _Listed(frame, pc, frame.GetSP())


def _physical(frames: Iterable[_Listed]) -> Iterator[NativeFrame]:
    """Group LLDB's frames by the registers that they share.

    A group ends with the frame of a function that is not inlined.  If that function ended in a tail call, LLDB has
    dropped its frame; then the group ends where SP or the CFA changes, or a tail call begins.

    A frame whose SP is not that of the next one is a group of its own; each question to LLDB takes 2 microseconds.
    """
    indexes: list[int] = []
    inner: _Listed | None = None
    pc = tail_calls = 0
    for index, (listed, following) in enumerate(_with_next(frames)):
        if not indexes and following is not None and listed.sp != following.sp:
            yield _native([index], listed.pc, listed, 0)
            continue
        frame = listed.frame
        if inner is not None and (frame.IsArtificial() or _place(listed) != _place(inner)):
            yield _native(indexes, pc, inner, tail_calls)
            indexes, inner, tail_calls = [], None, 0
        indexes.append(index)
        if frame.IsArtificial():
            tail_calls += 1
            continue  # a function that ended in a tail call, which LLDB knows from the debug information
        if inner is None:
            # For the caller of an inlined function, LLDB returns the address at which it was inlined.
            pc = listed.pc
        inner = listed
        if not frame.IsInlined():
            yield _native(indexes, pc, listed, tail_calls)
            indexes, inner, tail_calls = [], None, 0
    if inner is not None:
        yield _native(indexes, pc, inner, tail_calls)


def _with_next(frames: Iterable[_Listed]) -> Iterator[tuple[_Listed, _Listed | None]]:
    """Yield each frame with the next one; ``None``: it is the last."""
    before: _Listed | None = None
    for frame in frames:
        if before is not None:
            yield before, frame
        before = frame
    if before is not None:
        yield before, None


def _place(listed: _Listed) -> tuple[int, int]:
    return listed.sp, listed.frame.GetCFA()


def _native(indexes: list[int], pc: int, listed: _Listed, tail_calls: int) -> NativeFrame:
    fp, cfa = _known(listed.frame.GetFP()), _known(listed.frame.GetCFA())
    return NativeFrame(tuple(indexes), pc, _known(listed.sp), fp, cfa, tail_calls)


def _known(address: int) -> int | None:
    return None if address == lldb.LLDB_INVALID_ADDRESS else address
