"""The methods that unwind a sample: frame pointers, SFrame, DWARF CFI, and SFrame before DWARF CFI."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from itertools import islice
from typing import Callable, NamedTuple

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError, MemoryReadError, SFrameError, StepError
from sframe_unwind.perf.sample_memory import SampleMemory
from sframe_unwind.perf.spaces import Space
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.process.unwinder import Fallback, StackMemory
from sframe_unwind.unwind.cfi_fallback import NAME
from sframe_unwind.unwind.modules import Modules, NoData, Unusable
from sframe_unwind.unwind.walk import End, FallbackUnwinder, Registers, Walk

NO_CFI = "no CFI for the address"
KERNEL_LIMIT = 127
"""``PERF_MAX_STACK_DEPTH``: frames that the kernel records by frame pointers."""


class Ending(Enum):
    """How a stack ends."""

    REACHED = "reached"
    """At the start of the thread."""
    CUT = "cut"
    """The caller is in the part of the stack that was not copied."""
    FAILED = "failed"


class Stack(NamedTuple):
    """The stack of a sample by one method."""

    pcs: tuple[int, ...]
    """The pc of each frame, from the innermost outward."""
    interrupted: tuple[bool, ...]
    """Whether each pc is not a return address."""
    ending: Ending
    reason: str
    """Why it ends; empty: it reached the start of the thread."""


class Context(NamedTuple):
    """What there is to unwind of a sample."""

    arch: Arch
    space: Space
    registers: Mapping[int, int]
    """By DWARF number."""
    memory: SampleMemory
    stack_is_cut: bool

    def read_register(self, number: int) -> int:
        """Return a register of the innermost frame.

        :raises StepError: it was not recorded.
        """
        if number not in self.registers:
            raise StepError(f"{self.arch.register_name(number)} was not recorded")
        return self.registers[number]


Method = Callable[[Context], Stack]


def by_frame_pointers(context: Context) -> Stack:
    """Unwind as the kernel does it (``perf_callchain_user`` of ``arch/*/kernel``), which checks little.

    s390x has a back chain in place of frame pointers, in code that was compiled for it.
    """
    arch = context.arch
    chain = arch.sp if arch.frame_record.in_back_chain else arch.fp
    return _follow(context, [context.registers[arch.pc]], context.registers[chain])


def by_frame_pointers_of_caller(context: Context) -> Stack:
    """Unwind the innermost frame by SFrame or DWARF CFI, and its callers by frame pointers.

    A function that has not set up its frame yet, or never does, hides its caller from frame pointers.
    """
    walk, history = _begin(context, context.space.sframe)
    for frame in islice(walk, 2):
        history.add(frame)
    if len(history.frames) < 2:
        return by_frame_pointers(context)
    innermost, caller = history.frames
    if caller.interrupted:  # by a signal: its frame may be as incomplete
        return by_frame_pointers(context)
    return _follow(
        context, [innermost.pc, caller.pc], caller.sp if context.arch.frame_record.in_back_chain else caller.fp
    )


def _follow(context: Context, pcs: list[int], at: int) -> Stack:
    """Follow the chain of frame pointers.

    :param pcs: the frames that are known.
    :param at: the frame pointer of the last of them; on s390x SP, where the back chain begins.
    """
    arch, read_word = context.arch, context.memory.read_word
    record = arch.frame_record
    ending, reason = Ending.FAILED, "more frames than the kernel records"
    try:
        while len(pcs) < KERNEL_LIMIT:
            start = read_word(at) if record.in_back_chain else at
            if not start:
                ending, reason = Ending.REACHED, ""
                break
            if start % 8 and arch.ra is not None:
                raise StepError("the frame pointer is not aligned")
            following, pc = (start, read_word(start + record.pc)) if record.in_back_chain else _record(context, start)
            pcs.append(arch.strip(pc, arch.pac_mask))
            at = following
    except MemoryReadError as error:
        is_cut = context.stack_is_cut and context.memory.is_behind(error.address)
        ending = Ending.CUT if is_cut else Ending.FAILED
        reason = "" if is_cut else "the frame pointer does not lead to a frame"
    except SFrameError as error:
        ending, reason = Ending.FAILED, str(error)
    return Stack(tuple(pcs), (True, *(False for _ in pcs[1:])), ending, reason)


def _record(context: Context, start: int) -> tuple[int, int]:
    """Return the frame pointer and the return address in a frame record."""
    record, read_word = context.arch.frame_record, context.memory.read_word
    return read_word(start + record.fp), read_word(start + record.pc)


def by_sframe(context: Context) -> Stack:
    """Unwind by SFrame alone, as a careful reader does, and through the kernel's signal frames."""
    return _walk(context, context.space.sframe, with_cfi=False)


def by_sframe_of_linux(context: Context) -> Stack:
    """Unwind by what Linux would load, without anything else."""
    return _walk(context, context.space.sframe_linux, alone=True)


def by_cfi(context: Context) -> Stack:
    """Unwind by DWARF CFI, and through the kernel's signal frames."""
    return _walk(context, context.space.without_sframe)


def by_sframe_then_cfi(context: Context) -> Stack:
    """Unwind by SFrame, and by DWARF CFI where SFrame has no row."""
    return _walk(context, context.space.sframe)


def _walk(context: Context, modules: Modules, with_cfi: bool = True, alone: bool = False) -> Stack:
    """Unwind by SFrame; see :func:`_begin`."""
    walk, history = _begin(context, modules, with_cfi, alone)
    for frame in walk:
        history.add(frame)
    pcs = tuple(frame.pc for frame in history.frames)
    interrupted = tuple(frame.interrupted for frame in history.frames)
    if walk.end in (None, End.OUTERMOST, End.PC_ZERO) or _is_start(context.space, walk, pcs[-1]):
        ending, reason = Ending.REACHED, ""
    elif walk.end is End.UNREADABLE and context.stack_is_cut and context.memory.is_behind(context.memory.missed):
        ending, reason = Ending.CUT, ""
    else:
        ending = Ending.FAILED
        reason = _reason(context.space, modules, lookup_address(pcs[-1], interrupted[-1]), walk)
    return Stack(pcs, interrupted, ending, reason)


def _begin(
    context: Context, modules: Modules, with_cfi: bool = True, alone: bool = False
) -> tuple[Walk, RegisterHistory]:
    """Return a walk by SFrame, and the history to which each of its frames has to be added.

    :param with_cfi: unwind by DWARF CFI where the modules have no SFrame.
    :param alone: nothing but SFrame, so that the stack ends at a signal frame.
    """
    arch, registers, memory = context.arch, context.registers, context.memory
    innermost = Registers(*(registers[number] for number in (arch.pc, arch.sp, arch.fp)))
    history = RegisterHistory(arch, context.read_register, memory.read_word, context.space.find_cfi)
    reads = StackMemory(memory.read, memory.read_word, memory.read_frame_word)
    fallback = Fallback(arch, context.space, reads, history, with_cfi, with_guess=False)
    other = None if alone else FallbackUnwinder(NAME, fallback.unwind)
    return Walk(arch, modules, innermost, memory.read_frame_word, context.read_register, other), history


def _is_start(space: Space, walk: Walk, pc: int) -> bool:
    """Return whether a walk ended where the process began."""
    file = space.find(pc) if walk.end is End.NO_DATA else None
    try:
        return file is not None and file.is_start(pc)
    except SFrameError:
        return False


def _reason(space: Space, modules: Modules, lookup: int, walk: Walk) -> str:
    """Return why a walk failed, in words that are the same for all samples that fail for that reason."""
    _, without_file = space.place(lookup)
    if without_file:
        return without_file
    if walk.end is End.UNREADABLE:
        return "the rule leads to memory that is not of the stack"
    if modules is space.without_sframe:
        return NO_CFI if walk.end is End.NO_DATA else "the CFI cannot be carried out"
    result = modules.results[lookup]
    if isinstance(result, NoData):
        return result.reason
    if isinstance(result, Unusable):
        return result.error.what if isinstance(result.error, FormatError) else "the section is unusable"
    return "the row cannot be carried out"


METHODS: Mapping[str, Method] = {
    "fp": by_frame_pointers,
    "fp-mended": by_frame_pointers_of_caller,
    "sframe": by_sframe,
    "sframe-linux": by_sframe_of_linux,
    "sframe+dwarf": by_sframe_then_cfi,
    "dwarf": by_cfi,
}
"""By the name that ``--method`` takes, in the order of the table."""

TITLES = {
    "fp": "frame pointers",
    "fp-mended": "frame pointers, innermost frame by SFrame or DWARF",
    "sframe": "SFrame",
    "sframe-linux": "SFrame as Linux loads it",
    "sframe+dwarf": "SFrame, then DWARF",
    "dwarf": "DWARF",
}
