"""The frames that GDB gives as a stack to show, and why it ends."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import gdb

from gdb_plugin.commands.contexts import name_of
from gdb_plugin.commands.walking import NAMES, Walked, is_interrupted, is_user_space, physical, register_of
from gdb_plugin.frames.unwinder import Recorder
from gdb_plugin.interface.texts import path_of, text
from gdb_plugin.process.process import Process
from sframe_unwind.address import lookup_address
from sframe_unwind.arch import PlaceKind
from sframe_unwind.kernel.entry_code import shown_name
from sframe_unwind.kernel.linux import EXCEPTION
from sframe_unwind.kernel.unwinder import NAME as KERNEL
from sframe_unwind.report.stack import ShownFrame, Stack, by_sframe
from sframe_unwind.unwind.modules import Found, NoData

NATIVE = "gdb"
"""The name of GDB's own unwinders."""
MAIN = "main; GDB goes on with 'set backtrace past-main on'"
"""The reason that is shown where :func:`ends_at` ends a stack."""


def shown_frame(process: Process, walked: Walked, level: int) -> ShownFrame:
    frame = walked.frame
    pc = frame.pc()
    module = process.modules.find(pc)
    module_name = module.name if module else ""
    address = lookup_address(pc, walked.interrupted)
    place = process.entry_places.get(address)
    if place is not None and place.kind is PlaceKind.EXCEPTION and not walked.has_caller:  # of user space
        name, unwinder = text(frame.name) or place.function, KERNEL
    elif place is not None:
        name, unwinder = shown_name(place, text(frame.name)), EXCEPTION if place.kind is PlaceKind.EXCEPTION else KERNEL
    else:
        name = NAMES.get(frame.type()) or text(frame.name) or process.run_time_name(pc) or process.run_time_name(pc - 1)
        unwinder = by_sframe(address, process.modules) if walked.claimed else NATIVE if walked.has_caller else ""
    source = _place(frame, module_name)
    if walked.is_misplaced:
        name, source, _ = name_of(process, pc)
    return ShownFrame(
        level=level,
        pc=pc,
        cfa=walked.cfa,
        fp=walked.fp,
        function=name,
        place=source,
        module=module_name,
        unwinder=unwinder,
        lookup=address,
    )


def end_of(process: Process, recorder: Recorder, frame: gdb.Frame, with_sframe: bool) -> str:
    """Return why GDB shows no frame beyond a frame.

    :param with_sframe: SFrame unwinds where it can, so its reason is given, too.
    """
    place = process.entry_places.get(lookup_address(frame.pc(), is_interrupted(process, frame)))
    if place is not None and place.is_outermost:
        return place.kind.value
    if place is not None and place.kind is PlaceKind.EXCEPTION:
        outer = physical(frame.older())
        # A frame that was claimed as the outermost one is not a signal frame.
        if frame.type() == gdb.NORMAL_FRAME or (outer is not None and is_user_space(process, outer)):
            return PlaceKind.USER_ENTRY.value
    by_sframe = _by_sframe(process, recorder, frame) if with_sframe else ""
    reason = frame.unwind_stop_reason()
    if reason != gdb.FRAME_UNWIND_NO_REASON:
        why = str(gdb.frame_stop_reason_string(reason))
        return f"{why}; SFrame: {by_sframe}" if by_sframe else why
    if ends_at(text(frame.name)):
        return MAIN
    return by_sframe or "the outermost frame for GDB; 'show backtrace' lists its limits"


def _by_sframe(process: Process, recorder: Recorder, frame: gdb.Frame) -> str:
    """Return why a frame has no caller according to SFrame."""
    pc = frame.pc()
    refused = recorder.refused.get((pc, register_of(frame, process.registers(frame).sp) or 0))
    if refused is not None:
        return refused
    answer = process.modules.results[lookup_address(pc, is_interrupted(process, frame))]
    if isinstance(answer, NoData):
        return answer.reason
    if isinstance(answer, Found) and answer.rule.ra_undefined:
        return "the return address is undefined, this is the outermost frame"
    return ""


def ends_at(function: str) -> bool:
    """Return whether GDB ends stacks at a function, by a setting of the user's."""
    return function == "main" and not gdb.parameter("backtrace past-main")


def titled(frames: list[ShownFrame], end: str) -> Stack:
    thread = gdb.selected_thread()
    if thread is None:
        return Stack("0", "Core without threads", tuple(frames), end)
    number = f"{thread.inferior.num}.{thread.num}" if len(gdb.inferiors()) > 1 else str(thread.num)
    return Stack(number, f'Thread {number} "{text(lambda: thread.name)}"', tuple(frames), end)


def _place(frame: gdb.Frame, module: str) -> str:
    line = frame.find_sal()
    if line.symtab is not None and line.line:
        return f"{_file_name(path_of(line.symtab))}:{line.line}"
    return _file_name(module)


@lru_cache(maxsize=1000)
def _file_name(path: str) -> str:
    """Return the last part of a path; it is cached, because a stack has the same files at each stop."""
    return Path(path).name
