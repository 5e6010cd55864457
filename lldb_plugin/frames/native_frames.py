"""Reads LLDB's own frames of a thread as plain values, one for each frame that has registers of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Union

import lldb

from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple

Frames = Union["lldb.SBThread", "lldb.SBFrameList"]
"""Where frames are read by index: a thread that shows LLDB's own frames, or the list that LLDB gave a provider."""


class NoFramesError(SFrameError):
    """The thread has no frames, for example because its process runs."""


class NativeFrame(NamedTuple):
    """One frame with registers of its own, and LLDB's frames of the functions that were inlined and tail-called in it.

    The frame pointer is not read: to find its place, LLDB looks through all frames inside.
    """

    indexes: tuple[int, ...]
    """LLDB's indexes of these frames, from the innermost outward: tail-called and inlined functions, and the frame."""
    pc: int
    sp: int | None
    """``None``: LLDB does not know it."""
    tail_calls: int
    """The number of frames of tail-called functions among them; these are the innermost."""


def frames_from(frames: Frames, first: int) -> Iterator[NativeFrame]:
    """Yield the frames from an index on, outward, until there is none.

    ``GetNumFrames`` returns their number for a stopped thread, but while LLDB steps it can return 0 although there are
    frames.

    :param first: the index of the innermost function of a frame.
    """
    return _grouped(_iterate(frames, first), first)


class _Listed(NamedTuple):
    """One frame in LLDB's list."""

    frame: lldb.SBFrame
    pc: int
    sp: int


def _iterate(frames: Frames, first: int) -> Iterator[_Listed]:
    for index in itertools.count(first):
        frame = frames.GetFrameAtIndex(index)
        pc = frame.GetPC()
        if pc == lldb.LLDB_INVALID_ADDRESS:  # there is no such frame
            return
        yield _Listed(frame, pc, frame.GetSP())


def _grouped(frames: Iterable[_Listed], first: int) -> Iterator[NativeFrame]:
    """Group LLDB's frames, the first of which has an index, by the registers that they share.

    A group ends with the frame of a function that is not inlined.  If that function ended in a tail call, LLDB has
    dropped its frame; then the group ends where SP or the CFA changes, or a tail call begins.

    A frame whose SP is not that of the next one is a group of its own; each question to LLDB takes 2 microseconds.
    """
    indexes: list[int] = []
    inner: _Listed | None = None
    pc = tail_calls = 0
    for index, (listed, following) in enumerate(_with_next(frames), first):
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
            # For the frame that contains an inlined function, LLDB returns the address at which that was inlined.
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
    return NativeFrame(tuple(indexes), pc, known(listed.sp), tail_calls)


def known(address: int) -> int | None:
    """Return an address that LLDB gave; ``None``: it does not know it."""
    return None if address == lldb.LLDB_INVALID_ADDRESS else address
