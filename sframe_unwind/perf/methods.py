"""The methods that unwind a sample: frame pointers, SFrame, DWARF CFI, the machine code, and some of them in turn."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Callable

from sframe_unwind.errors import MemoryReadError, SFrameError, StepError
from sframe_unwind.perf.ending import Ending
from sframe_unwind.perf.recording import Recording
from sframe_unwind.perf.sample_walk import frames, unwind
from sframe_unwind.perf.stack import Context, Stack

KERNEL_LIMIT = 127
"""``PERF_MAX_STACK_DEPTH``: maximum number of frames that the kernel records by frame pointers."""

KERNEL = "kernel"
"""The method whose stacks are those of the recording."""

Method = Callable[[Context], Stack]


def by_frame_pointers(context: Context) -> Stack:
    """Unwind as the kernel does (``perf_callchain_user`` of ``arch/*/kernel``), which checks little.

    s390x has a back chain in place of frame pointers, in code that was compiled with it.
    """
    arch = context.arch
    chain = arch.sp if arch.frame_record.in_back_chain else arch.fp
    return _follow(context, [context.registers[arch.pc]], context.registers[chain])


def by_frame_pointers_of_caller(context: Context) -> Stack:
    """Unwind the innermost frame by SFrame or DWARF CFI, and its callers by frame pointers.

    If the innermost function has not set up its frame, its caller cannot be found by frame pointers.
    """
    found = list(islice(frames(context, context.space.by_sframe_then_cfi), 2))
    if len(found) < 2:
        return by_frame_pointers(context)
    innermost, caller = found
    if caller.interrupted:  # by a signal: its frame may be incomplete, too
        return by_frame_pointers(context)
    return _follow(
        context, [innermost.pc, caller.pc], caller.sp if context.arch.frame_record.in_back_chain else caller.fp
    )


def _follow(context: Context, pcs: list[int], at: int) -> Stack:
    """Follow the chain of frame pointers.

    :param pcs: the pcs of the known frames.
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
        is_cut = context.stack_is_cut and context.memory.is_not_copied(error.address)
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
    """Unwind by SFrame alone, as this project reads it, and through the kernel's signal frames."""
    return unwind(context, context.space.by_sframe)


def by_sframe_of_linux(context: Context) -> Stack:
    """Unwind only by the SFrame that Linux would load."""
    return unwind(context, context.space.by_sframe_of_linux)


def by_cfi(context: Context) -> Stack:
    """Unwind by DWARF CFI, and through the kernel's signal frames."""
    return unwind(context, context.space.by_cfi)


def by_sframe_then_cfi(context: Context) -> Stack:
    """Unwind by SFrame, and by DWARF CFI if SFrame has no row."""
    return unwind(context, context.space.by_sframe_then_cfi)


def by_sframe_then_frame_pointers(context: Context) -> Stack:
    """Unwind by SFrame, and by frame pointers if there is no row, as Linux does with its own reader."""
    return unwind(context, context.space.by_sframe_then_frame_pointers)


def by_sframe_then_code(context: Context) -> Stack:
    """Unwind by SFrame, and by the machine code if there is no row, as if SFrame described assembly code, too."""
    return unwind(context, context.space.by_sframe_then_code)


def by_code(context: Context) -> Stack:
    """Unwind by the machine code alone, and through the kernel's signal frames."""
    return unwind(context, context.space.by_code)


def by_cfi_then_frame_pointers(context: Context) -> Stack:
    """Unwind by DWARF CFI, and by frame pointers if there is none, as ``perf script`` does with libdw."""
    return unwind(context, context.space.by_cfi_then_frame_pointers)


def by_kernel(context: Context) -> Stack:
    """Return the stack as the kernel unwound it when it recorded the sample, or on the way back to user space.

    The chain itself does not tell whether it reaches the start of the thread.
    """
    chain = context.user_chain
    if not chain:
        return Stack((context.registers[context.arch.pc],), (True,), Ending.FAILED, "the kernel recorded no user stack")
    return Stack(chain, (True, *(False for _ in chain[1:])), Ending.REACHED, "")


METHODS: Mapping[str, Method] = {
    KERNEL: by_kernel,
    "fp": by_frame_pointers,
    "fp-mended": by_frame_pointers_of_caller,
    "sframe": by_sframe,
    "sframe-linux": by_sframe_of_linux,
    "sframe+fp": by_sframe_then_frame_pointers,
    "sframe+dwarf": by_sframe_then_cfi,
    "sframe+code": by_sframe_then_code,
    "code": by_code,
    "dwarf": by_cfi,
    "dwarf+fp": by_cfi_then_frame_pointers,
}
"""By the name that ``--method`` takes, in the order of the table."""


UNCERTAIN_ENDS = {
    "fp": "the chain of frame pointers ends here",
    "fp-mended": "the chain of frame pointers ends here",
    KERNEL: "the kernel's chain ends here",
}
"""Methods whose stacks can end early without a sign of it, and the reason to show."""


BY_CODE = frozenset({"sframe+code", "code"})
"""Methods that need the extra ``code``."""


def usual_methods(recording: Recording) -> tuple[str, ...]:
    """Return the methods for which a recording has data, without those that need an extra."""
    others = BY_CODE if recording.has_user_chains else {KERNEL, *BY_CODE}
    return tuple(method for method in METHODS if method not in others)


TITLES = {
    KERNEL: "the kernel, when it recorded",
    "fp": "frame pointers",
    "fp-mended": "frame pointers, innermost frame by SFrame or DWARF",
    "sframe": "SFrame",
    "sframe-linux": "SFrame as Linux loads it",
    "sframe+fp": "SFrame, then frame pointers",
    "sframe+dwarf": "SFrame, then DWARF",
    "sframe+code": "SFrame, then the machine code",
    "code": "the machine code",
    "dwarf": "DWARF",
    "dwarf+fp": "DWARF, then frame pointers",
}
