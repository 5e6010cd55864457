"""Walks the frames that GDB gives, one after the other, in the core's terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gdb

from gdb_plugin.frames.unwinder import Recorder
from gdb_plugin.interface.selection import chain
from gdb_plugin.process.process import Process
from sframe_unwind.address import ADDRESS_MASK, lookup_address
from sframe_unwind.arch import PlaceKind
from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind_rule import UnwindRule

SHARED = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)
"""Frames that GDB derives from debug information, without unwinding."""
NAMES = {gdb.DUMMY_FRAME: "<function called from gdb>", gdb.SIGTRAMP_FRAME: "<signal handler called>"}
"""GDB's names of frames that belong to no function."""


class Walked(NamedTuple):
    """A frame that has registers."""

    frame: gdb.Frame
    fp: int | None
    claimed: bool
    """Whether SFrame unwound it."""
    interrupted: bool
    is_misplaced: bool
    """Whether it was interrupted, but GDB takes its pc for a return address, and shows the function and line of pc - 1.

    This happens because an unwinder in Python cannot make signal frames."""
    cfa: int | None
    has_caller: bool
    """Whether it has a caller, also if the user's settings do not let GDB show that one."""


def walk_frames(process: Process, recorder: Recorder) -> Iterator[Walked]:
    """Yield the physical frames of the selected thread.

    :raises gdb.error: GDB cannot continue; the frames up to there have been yielded.
    """
    frame = physical(gdb.newest_frame())
    interrupted, is_misplaced, fp = True, False, None
    if frame is not None:
        fp = register_of(frame, process.registers(frame).fp)
    while frame is not None:
        registers = process.registers(frame)
        pc, sp = frame.pc(), register_of(frame, registers.sp)
        claimed = (pc, sp) in recorder.claimed
        rule = _rule(process, lookup_address(pc, interrupted), claimed)
        error, outer = None, None
        try:
            outer = physical(frame.older())
        except gdb.error as problem:
            error = problem
        if outer is not None and is_user_space(process, outer):
            outer = None
        if outer is not None:
            outer_sp = register_of(outer, process.registers(outer).sp)
            cfa = None if outer_sp is None else outer_sp - process.arch.sp_from_cfa
        else:
            limited = error is None and frame.unwind_stop_reason() == gdb.FRAME_UNWIND_NO_REASON
            cfa = _cfa(process, frame, rule, sp, fp) if limited else None
        yield Walked(
            frame=frame,
            fp=fp,
            claimed=claimed,
            interrupted=interrupted,
            is_misplaced=is_misplaced,
            cfa=cfa,
            has_caller=outer is not None or cfa is not None,
        )
        if error is not None:
            raise error
        interrupted = _has_interrupted_caller(process, frame)
        is_misplaced = interrupted and frame.type() not in NAMES
        # GDB looks for a saved register in all frames further in, which takes long in a deep stack.
        unchanged = not (claimed or interrupted) and rule is not None and rule.cfa is not None and rule.fp is None
        if outer is not None and not unchanged:
            fp = register_of(outer, process.registers(outer).fp)
        frame = outer


def is_user_space(process: Process, frame: gdb.Frame) -> bool:
    """Return whether a frame belongs to the program that entered the kernel.  GDB 13 continues there with guesses."""
    return process.kernel is not None and not process.arch.may_be_kernel(frame.pc())


def _rule(process: Process, address: int, claimed: bool) -> UnwindRule | None:
    """Return the rule by which a frame was unwound, as far as it is known."""
    if not claimed:
        return process.modules.cfi_rule(address)
    found = process.modules.results[address]
    return found.rule if isinstance(found, Found) else None


def _cfa(process: Process, frame: gdb.Frame, rule: UnwindRule | None, sp: int | None, fp: int | None) -> int | None:
    """Return the CFA of a frame whose caller GDB does not show."""
    if rule is None or sp is None or fp is None:
        return None
    registers = process.registers(frame)
    process.read_word.forget()
    try:
        return step(
            rule=rule,
            arch=process.arch,
            sp=sp,
            fp=fp,
            read_word=process.read_word,
            read_register=registers.reader(frame),
        ).cfa
    except (SFrameError, gdb.error):
        return None


def is_interrupted(process: Process, frame: gdb.Frame) -> bool:
    """Return whether the pc of a frame is the next instruction, not a return address."""
    inner = frame.newer()
    while inner is not None and inner.type() in SHARED:
        inner = inner.newer()
    return inner is None or _has_interrupted_caller(process, inner)


def _has_interrupted_caller(process: Process, frame: gdb.Frame) -> bool:
    """Return whether the caller of a frame was interrupted."""
    if frame.type() not in NAMES:
        # An unwinder in Python cannot make signal frames.
        found = process.modules.results[frame.pc()]
        return isinstance(found, Found) and found.signal
    # For GDB, a switch of the kernel's stacks is also a signal frame, because the plugin's CFI marks it as one.
    place = process.entry_places.get(frame.pc() - 1)
    return place is None or place.kind is PlaceKind.EXCEPTION


def physical(frame: gdb.Frame | None) -> gdb.Frame | None:
    """Return the first frame that has registers, from a frame outward."""
    return next((frame for frame in chain(frame) if frame.type() not in SHARED), None)


def register_of(frame: gdb.Frame, descriptor: Any) -> int | None:
    try:
        return int(frame.read_register(descriptor)) & ADDRESS_MASK
    except gdb.error:
        return None
