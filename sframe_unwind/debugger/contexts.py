"""Reads contexts that do not run, named by the options of commands: their registers and their stacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from sframe_unwind.address import ADDRESS_MASK, lookup_address
from sframe_unwind.debugger import tasks
from sframe_unwind.debugger.arguments import ContextArgument
from sframe_unwind.debugger.commands import REGS, TASK, UCONTEXT
from sframe_unwind.errors import counted
from sframe_unwind.kernel.entry_code import exception_name
from sframe_unwind.kernel.linux import EXCEPTION, Kernel
from sframe_unwind.kernel.unwinder import KernelUnwinder
from sframe_unwind.memory import ReadMemory, ReadRegister, WordReader
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.explain import FrameContext
from sframe_unwind.report.stack import SIGNAL_FRAME, ShownFrame, Stack, by_sframe
from sframe_unwind.unwind import signal_frame
from sframe_unwind.unwind.cfi_fallback import NAME, CfiFallback
from sframe_unwind.unwind.code_fallback import CodeFallback
from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.other_stacks import OtherStacks
from sframe_unwind.unwind.saved_context import (
    SavedContext,
    assignments,
    from_jump_buffer,
    from_registers,
    from_ucontext,
    pointer_guards,
)
from sframe_unwind.unwind.walk import SFRAME, End, FallbackUnwinder, Frame, Registers, UnwindResult, Walk


class Debugger(NamedTuple):
    """The functions of a plugin for a context that a command names.  An expression must not run code of the process."""

    address: Callable[[str], int]
    """Returns the value of an expression, or the address of the object that it denotes; raises an exception with one
    line."""
    register: Callable[[str], int | None]
    """Returns a register of the selected thread by name; ``None``: it is not known."""
    symbol: Callable[[str], Iterable[int]]
    """Returns the addresses of a variable by its linkage name."""
    at_random: Callable[[], int | None]
    """Returns ``AT_RANDOM`` of the auxiliary vector; ``None``: it is not known."""
    kernel: Callable[[], Kernel]
    """Returns the Linux kernel in the target; raises :class:`KernelError` if there is none."""


class Name(NamedTuple):
    """The name of the code at an address."""

    function: str
    """Empty: no symbol covers the address."""
    place: str
    """Source line or module."""
    module: str
    """The module's path."""


def saved_context(argument: ContextArgument, modules: Modules, read: ReadMemory, debugger: Debugger) -> SavedContext:
    """Return the context that an option names.

    :param modules: the modules of the process; a ``jmp_buf`` leads to code of one of them.
    :param read: reads the memory of the process.
    :raises SFrameError: the option is wrong, or there is no context.
    """
    arch = modules.arch
    if argument.option == TASK:
        return tasks.of_pid(debugger.kernel(), argument.text)
    if argument.option == REGS:
        registers = {number: debugger.address(text) for number, text in assignments(arch, argument.text).items()}
        return from_registers(arch, registers, read)
    address = debugger.address(argument.text) & ADDRESS_MASK
    if argument.option == UCONTEXT:
        return from_ucontext(arch, address, read)
    read_word = WordReader(read, arch.byteorder)
    guards = pointer_guards(arch, read_word, debugger.register, debugger.symbol, debugger.at_random())
    return from_jump_buffer(arch, address, read, guards, lambda pc: modules.find(pc) is not None)


def walk(
    context: SavedContext, modules: Modules, read: ReadMemory, pac_mask: int | None, kernel: Kernel | None = None
) -> Walk:
    """Return the walk over the stack of a context: by SFrame, else by signal frames, DWARF CFI, or the code.

    :param kernel: the Linux kernel in whose memory the context is.
    """
    arch = context.arch
    read_word = WordReader(read, arch.byteorder)
    cfi = CfiFallback(arch, modules.cfi_match, read_word, pac_mask)
    code = CodeFallback(modules, read_word, pac_mask)
    entry_code = KernelUnwinder(kernel, read_word) if kernel is not None else None

    def unwind(registers: Registers, interrupted: bool, read_register: ReadRegister | None) -> UnwindResult | None:
        return (
            (entry_code.unwind(registers, interrupted, read_register) if entry_code is not None else None)
            or signal_frame.unwind(arch, read, read_word, registers)
            or cfi.unwind(registers, interrupted, read_register)
            or code.unwind(registers, interrupted, read_register)
            or (entry_code.unwind_leaf(registers, interrupted, read_register) if entry_code is not None else None)
        )

    return Walk(
        arch=arch,
        modules=modules,
        registers=context.innermost,
        read_word=read_word,
        read_register=context.read_register,
        fallback=FallbackUnwinder(NAME, unwind),
        pac_mask=pac_mask,
        skip=kernel.leaves_stack if kernel is not None else None,
        interrupted=context.interrupted,
        other_stacks=OtherStacks(arch, read) if kernel is None else None,
    )


def stack(steps: Walk, modules: Modules, name: Callable[[int], Name], limit: int | None) -> Stack:
    """Return the stack of a context for display.

    :param name: returns the name of the code at an address.
    :param limit: maximum number of frames.
    """
    frames, end = frames_of(steps, modules, name, limit)
    return Stack("", "", frames, end)


def frames_of(
    steps: Walk, modules: Modules, name: Callable[[int], Name], limit: int | None
) -> tuple[tuple[ShownFrame, ...], str]:
    """Return the frames of a walk for display, and the reason why they end; see :func:`stack`."""
    frames: list[ShownFrame] = []
    for frame in steps:
        if len(frames) == limit:
            return tuple(frames), only(limit)
        frames.append(_shown(frame, modules, name))
    end = steps.end.value if steps.end else ""
    if steps.detail:
        end = steps.detail if steps.end is End.OUTERMOST else f"{end}: {steps.detail}"
    return tuple(frames), end


def only(limit: int) -> str:
    """Return the reason why a stack with a limit of the user ends."""
    return f"only the innermost {counted(limit, 'frame was', 'frames were')} asked for"


def explained(context: SavedContext, read: ReadMemory, pac_mask: int | None) -> tuple[int, FrameContext]:
    """Return the lookup address of a context's innermost frame, and the registers and memory to explain its row."""
    pc, sp, fp = context.innermost
    read_word = WordReader(read, context.arch.byteorder)
    return lookup_address(pc, context.interrupted), FrameContext(sp, fp, read_word, context.read_register, pac_mask)


def _shown(frame: Frame, modules: Modules, name: Callable[[int], Name]) -> ShownFrame:
    address = lookup_address(frame.pc, frame.interrupted)
    unwinder = by_sframe(address, modules) if frame.unwinder == SFRAME else frame.unwinder
    named = name(address)
    if frame.unwinder == signal_frame.NAME:
        named = named._replace(function=SIGNAL_FRAME)
    elif frame.unwinder == EXCEPTION:
        named = named._replace(function=exception_name(named.function))
    return ShownFrame(frame.level, frame.pc, frame.cfa, frame.fp, *named, unwinder, lookup=address)
