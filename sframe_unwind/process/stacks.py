"""The stacks of a process's threads, frame by frame with names."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import StepError
from sframe_unwind.memory import ReadMemory, WordReader
from sframe_unwind.process import unwinder
from sframe_unwind.process.base import Thread
from sframe_unwind.process.objects import Objects
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.report.demangle import demangle
from sframe_unwind.report.stack import ShownFrame, Stack
from sframe_unwind.unwind.cfi_fallback import NAME
from sframe_unwind.unwind.walk import End, FallbackUnwinder, Frame, Registers, Walk

SIGNAL_FRAME = "<signal handler called>"
"""What stands for the function of a signal frame, as in GDB."""


class UnwoundThread(NamedTuple):
    """A thread and its frames, without their names."""

    thread: Thread
    frames: tuple[Frame, ...]
    end: str


def walk(thread: Thread, arch: Arch, objects: Objects, read: ReadMemory) -> UnwoundThread:
    """Unwind the stack of a thread.

    :param read: reads the memory of the process.
    """

    def read_register(number: int) -> int:
        if number not in thread.registers:
            raise StepError(f"{arch.register_name(number)} is not among the thread's registers")
        return thread.registers[number]

    read_word = WordReader(read, arch.byteorder)
    trail = RegisterHistory(arch, read_register, read_word, objects.find_cfi)
    fallback = unwinder.Fallback(arch, objects, read, read_word, trail)
    innermost = Registers(*(thread.registers[number] for number in (arch.pc, arch.sp, arch.fp)))
    steps = Walk(
        arch, objects.modules, innermost, read_word, read_register, FallbackUnwinder(NAME, fallback.unwind)
    )
    for frame in steps:
        trail.add(frame)
    return UnwoundThread(thread, trail.frames, _end(steps, trail.frames[-1], objects))


def _end(steps: Walk, last: Frame, objects: Objects) -> str:
    """Return why there are no frames beyond the last one."""
    if steps.end is None or steps.end is End.OUTERMOST:
        return End.OUTERMOST.value
    if steps.end is End.NO_DATA:
        found = objects.find(lookup_address(last.pc, last.interrupted))
        if found is not None and found.name.startswith("/") and found.file is None:
            return f"{steps.end.value}: {found.name} is not found"
    return f"{steps.end.value}: {steps.detail}" if steps.detail else steps.end.value


def named(walked: UnwoundThread, objects: Objects) -> Stack:
    """Return a stack with the names of its functions."""
    thread, frames, end = walked
    interrupted = [*(frame.interrupted for frame in frames[1:]), False]
    shown = tuple(_shown(frame, signal, objects) for frame, signal in zip(frames, interrupted))
    title = f'Thread {thread.id} "{thread.name}"' + (f", {thread.state}" if thread.state else "")
    return Stack(str(thread.id), title, shown, end)


def _shown(frame: Frame, signal: bool, objects: Objects) -> ShownFrame:
    """Return a frame with what its address is called.

    :param signal: it is a signal frame.
    """
    lookup = lookup_address(frame.pc, frame.interrupted or signal)
    found = objects.find(lookup)
    function, offset, module, place = objects.run_time_name(lookup), 0, "", ""
    if found is not None:
        module = found.name
        place = f"{module.rpartition('/')[2]}+{frame.pc - found.bias:#x}"
        named = found.function_at(lookup)
        if named is not None:
            function, offset = demangle(_unversioned(named.function)), named.offset + frame.pc - lookup
    if signal:
        function, offset = SIGNAL_FRAME, 0
    return ShownFrame(
        frame.level, frame.pc, frame.cfa, frame.fp, function, place, module, frame.unwinder, offset
    )


def _unversioned(symbol: str) -> str:
    """Return a symbol without the version that symbol tables of shared libraries add."""
    return symbol.partition("@")[0] or symbol
