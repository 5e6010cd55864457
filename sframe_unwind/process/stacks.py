"""Unwinds the threads of a process and names the functions of their frames."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import StepError, counted
from sframe_unwind.memory import ReadMemory, ReadRegister, WordReader
from sframe_unwind.process.base import Thread
from sframe_unwind.process.by_code import CodeUnwinder
from sframe_unwind.process.guessing import Guess
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.process.target import Code, Target, UnwoundThread
from sframe_unwind.process.unwinder import Fallback, StackMemory
from sframe_unwind.report.demangle import demangle
from sframe_unwind.report.stack import INLINED, SIGNAL_FRAME, ShownFrame, Stack
from sframe_unwind.unwind.cfi_fallback import NAME
from sframe_unwind.unwind.other_stacks import OtherStacks
from sframe_unwind.unwind.saved_context import SavedContext, from_jump_buffer, pointer_guards
from sframe_unwind.unwind.walk import End, FallbackUnwinder, Frame, Registers, UnwindResult, Walk

if TYPE_CHECKING:
    from sframe_unwind.kernel.linux import Kernel

_AT_RANDOM = 25
"""Key of the auxiliary vector: address of 16 random bytes."""


def walk(
    thread: Thread,
    arch: Arch,
    code: Code,
    read: ReadMemory,
    interrupted: bool = True,
    kernel: Kernel | None = None,
) -> UnwoundThread:
    """Unwind the stack of a thread.

    :param thread: a stopped thread, or one of a core file.
    :param code: the loaded code of the process.
    :param read: reads the memory of the process.
    :param interrupted: the pc of the thread is the next instruction to execute; ``False``: it is a return address.
    :param kernel: the Linux kernel that the thread is a task of; ``None``: it is a thread of a process.
    """

    def read_register(number: int) -> int:
        if number not in thread.registers:
            raise StepError(f"{arch.register_name(number)} is not among the thread's registers")
        return thread.registers[number]

    read_word = WordReader(read, arch.byteorder)
    history = RegisterHistory(arch, read_register, read_word, code.find_cfi)
    guess = Guess(arch, code, read, read_word, history)
    memory = StackMemory(read_word.read, read_word, read_word)  # the code at each pc is read to find signal frames
    by_code = CodeUnwinder(arch, code, memory, history)
    fallback = Fallback(arch, code, memory, history, by_code=by_code.unwind, guess=guess.unwind)
    entry_code = None
    if kernel is not None:
        from sframe_unwind.kernel.unwinder import KernelUnwinder  # processes do without it

        entry_code = KernelUnwinder(kernel, read_word)

    def unwind(registers: Registers, interrupted: bool, read_inner: ReadRegister | None) -> UnwindResult | None:
        if entry_code is None:
            return fallback.unwind(registers, interrupted, read_inner)
        found = entry_code.unwind(registers, interrupted, read_inner)
        if found is None and interrupted and code.find_cfi(registers.pc) is None:
            # A guess by frame pointers would leave out the caller.
            found = entry_code.unwind_leaf(registers, interrupted, read_inner)
        if found is not None:
            history.note_interrupted(found.read_register)
        return found or fallback.unwind(registers, interrupted, read_inner)

    innermost = Registers(thread.registers[arch.pc], thread.registers[arch.sp], thread.registers.get(arch.fp, 0))
    steps = Walk(
        arch=arch,
        modules=code.modules,
        registers=innermost,
        read_word=read_word,
        read_register=read_register,
        fallback=FallbackUnwinder(NAME, unwind),
        skip=kernel.leaves_stack if kernel is not None else code.prefers_cfi,
        interrupted=interrupted,
        other_stacks=OtherStacks(arch, read) if kernel is None else None,
    )
    for frame in steps:
        history.add(frame)
    last = history.frames[-1]
    if arch.fp not in thread.registers and not last.fp and steps.end not in (End.OUTERMOST, End.PC_ZERO):
        end = f"the next step needs {arch.register_name(arch.fp)}, which is not among the thread's registers"
        return UnwoundThread(thread, history.frames, end)
    return UnwoundThread(thread, history.frames, _end(steps, last, code))


def of_context(context: SavedContext, target: Target, limit: int | None = None) -> Stack:
    """Return the stack of a context that does not run; see :func:`walk` and :func:`named`."""
    thread = Thread(0, "", "", context.registers)
    stack = named(walk(thread, target.arch, target.code, target.read, context.interrupted), target.code, limit)
    values = ", ".join(f"{name}={value:#x}" for name, value in context.innermost._asdict().items())
    return stack._replace(thread="context", title=f"Context {values}")


def jump_buffer(address: int, target: Target, auxv: Mapping[int, int]) -> SavedContext:
    """Read a ``jmp_buf``; the pointer guard of the C library is computed from the random bytes that the kernel gave it.

    :param auxv: the auxiliary vector.
    :raises ContextError: see :func:`sframe_unwind.unwind.saved_context.from_jump_buffer`.
    """
    arch, read_word = target.arch, WordReader(target.read, target.arch.byteorder)
    guards = pointer_guards(arch, read_word, lambda _: None, lambda _: (), auxv.get(_AT_RANDOM))
    return from_jump_buffer(arch, address, target.read, guards, lambda pc: target.code.find(pc) is not None)


def _end(steps: Walk, last: Frame, code: Code) -> str:
    """Return why the stack ends with the last frame."""
    if steps.end is None or steps.end is End.OUTERMOST:
        return steps.detail or End.OUTERMOST.value
    detail = steps.detail
    if steps.end is End.NO_DATA:
        detail = code.why_no_data(lookup_address(last.pc, last.interrupted)) or detail
    return f"{steps.end.value}: {detail}" if detail else steps.end.value


Known = dict[tuple[int, bool, bool, str], list[ShownFrame]]
"""Frames with their names and lines by what these depend on: pc, interrupted, signal frame, and unwinder."""


def named(unwound: UnwoundThread, code: Code, limit: int | None = None, known: Known | None = None) -> Stack:
    """Return the stack of a thread with the names of its functions.

    :param limit: maximum number of frames, not counting inlined functions; ``None``: all.
    :param known: what was found for other threads of the process, to which this call adds; ``None``: nothing.
    """
    thread, frames, end = unwound
    interrupted = [*(frame.interrupted for frame in frames[1:]), False]
    if limit is not None and len(frames) > limit:
        end = f"{counted(len(frames) - limit, 'more frame')} (-n {limit})"
    kept = islice(zip(frames, interrupted), limit)
    known = {} if known is None else known
    shown: list[ShownFrame] = []
    for frame, signal in kept:
        key = frame.pc, frame.interrupted, signal, frame.unwinder
        if key not in known:
            known[key] = _with_inlined(_shown(frame, signal, code), code)
        shown += [one.at(level, frame) for level, one in enumerate(known[key], len(shown))]
    title = ", ".join(filter(None, (f'Thread {thread.id} "{thread.name}"', thread.state, thread.not_stopped)))
    return Stack(
        thread=str(thread.id),
        title=title,
        frames=tuple(shown),
        end=end,
        name=thread.name,
        signal=thread.state,
        not_stopped=thread.not_stopped,
    )


def _shown(frame: Frame, signal: bool, code: Code) -> ShownFrame:
    """Return a frame with function, module and offset.

    :param signal: the frame is a signal frame.
    """
    lookup = lookup_address(frame.pc, frame.interrupted or signal)
    found = code.find(lookup)
    function, offset, module, place = code.run_time_name(lookup), 0, "", ""
    if found is not None:
        module = found.name
        place = f"{module.rpartition('/')[2]}+{frame.pc - found.bias:#x}"
        match = found.function_at(lookup)
        if match is not None:
            function, offset = demangle(match.function), match.offset + frame.pc - lookup
    if signal:
        function, offset = _interruption(frame, function), 0
    address = None if found is None else frame.pc - found.bias
    return ShownFrame(
        level=frame.level,
        pc=frame.pc,
        cfa=frame.cfa,
        fp=frame.fp,
        function=function,
        place=place,
        module=module,
        unwinder=frame.unwinder,
        offset=offset,
        address=address,
        lookup=None if signal else lookup,
    )


def _interruption(frame: Frame, function: str) -> str:
    """Return the name with which a signal frame, or the frame of a kernel's exception, is shown."""
    from sframe_unwind.kernel.entry_code import exception_name  # few stacks have such a frame
    from sframe_unwind.kernel.linux import EXCEPTION

    return exception_name(function) if frame.unwinder == EXCEPTION else SIGNAL_FRAME


def _with_inlined(frame: ShownFrame, code: Code) -> list[ShownFrame]:
    """Return a frame with its source line, after one frame for each inlined function at its pc."""
    loaded = code.find(frame.lookup) if frame.lookup is not None else None
    places = loaded.places(frame.lookup) if loaded is not None and frame.lookup is not None else []
    if not places:
        return [frame]
    *inlined, own = places
    shown = [
        frame._replace(function=demangle(place.function), offset=0, unwinder=INLINED, file=place.file, line=place.line)
        for place in inlined
    ]
    name = frame.function or demangle(own.function)
    return [*shown, frame._replace(function=name, file=own.file, line=own.line)]
