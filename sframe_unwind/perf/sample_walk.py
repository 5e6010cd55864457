"""Walks the stack of a sample by SFrame, DWARF CFI and the machine code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from sframe_unwind.address import lookup_address
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.perf.ending import Ending
from sframe_unwind.perf.plain_rules import PlainFrame, Walked
from sframe_unwind.perf.spaces import Space
from sframe_unwind.perf.stack import Context, Stack
from sframe_unwind.perf.unwind_data import UnwindData
from sframe_unwind.process.by_code import CodeUnwinder
from sframe_unwind.process.register_history import RegisterHistory
from sframe_unwind.process.unwinder import Fallback, StackMemory
from sframe_unwind.unwind import frame_pointer
from sframe_unwind.unwind.cfi_fallback import NAME
from sframe_unwind.unwind.modules import Found, NoData, Unusable
from sframe_unwind.unwind.walk import End, FallbackUnwinder, Frame, Registers, UnwindResult, Walk

NO_CFI = "no CFI for the address"
NOT_BY_CODE = "the code does not show the caller"
_MOST_ENDS = 10_000
"""Maximum number of pcs whose ends are kept; damaged stacks end anywhere."""


def unwind(context: Context, data: UnwindData) -> Stack:
    """Unwind a sample.

    Most stacks have only plain rules, from the innermost frame to the outermost.
    """
    (_, found, registers), pcs = _walked(context, data)
    end = _end(context.space, data, registers.pc, not found)
    if end is None:
        return _Unwinding(context, data).stack(found, registers)
    if not registers.pc:
        pcs.pop()
    return Stack(tuple(pcs), (True,) + (False,) * (len(pcs) - 1), *end)


def frames(context: Context, data: UnwindData) -> Iterator[Frame]:
    """Yield the frames of a sample from the innermost outward."""
    unwinding = _Unwinding(context, data)
    for frame in unwinding.walk(_innermost(context), interrupted=True):
        unwinding.history.add(frame)
        yield frame


def _innermost(context: Context) -> Registers:
    arch, registers = context.arch, context.registers
    return Registers(registers[arch.pc], registers[arch.sp], registers[arch.fp])


def _walked(context: Context, data: UnwindData) -> tuple[Walked, list[int]]:
    """Return the frames with plain rules from the innermost one outward, and their :attr:`Walked.pcs`."""
    memory = context.memory
    if memory.walked is not None:
        pcs = memory.walked.pcs
        if data.plain.shares(memory.walked, pcs):
            return memory.walked, pcs
    walked = Walked(data.plain, *_follow(context, data, _innermost(context), interrupted=True))
    if memory.walked is None:
        memory.walked = walked
    return walked, walked.pcs


def _follow(
    context: Context, data: UnwindData, registers: Registers, interrupted: bool
) -> tuple[list[PlainFrame], Registers]:
    return data.plain.follow(context.memory.words, context.memory.start, registers, interrupted)


def _end(space: Space, data: UnwindData, pc: int, interrupted: bool) -> tuple[Ending, str] | None:
    """Return the ending of a stack without a frame beyond a pc, and the reason if it fails; ``None``: there may be one.

    All stacks that end at a pc end in the same way, so the result is kept.
    """
    if not pc:  # a frame with a pc of 0 does not exist
        return None if interrupted else (Ending.REACHED, "")
    key = pc, interrupted
    if key not in data.ends:
        if len(data.ends) >= _MOST_ENDS:
            data.ends.clear()
        data.ends[key] = _found_end(space, data, pc, interrupted)
    return data.ends[key]


def _found_end(space: Space, data: UnwindData, pc: int, interrupted: bool) -> tuple[Ending, str] | None:
    lookup = lookup_address(pc, interrupted)
    if data.plain.is_outermost(lookup):
        return Ending.REACHED, ""
    only_sframe = not (data.with_cfi or data.with_frame_pointers or data.with_code)
    if not only_sframe or not isinstance(data.modules.results[lookup], NoData):
        return None
    if data.with_signal_frames and space.may_be_trampoline(pc):
        return None
    if _is_start(space, End.NO_DATA, pc):
        return Ending.REACHED, ""
    return Ending.FAILED, _reason(space, data, lookup, End.NO_DATA)


class _Unwinding:
    """Unwinds one sample by rules of all kinds."""

    def __init__(self, context: Context, data: UnwindData) -> None:
        arch, memory = context.arch, context.memory
        self._context = context
        self._data = data
        self.history = RegisterHistory(arch, context.read_register, memory.read_word, context.space.find_cfi)
        """The frames that a walk has passed; each frame must be added to it."""
        reads = StackMemory(memory.read, memory.read_word, memory.read_frame_word)
        by_code = CodeUnwinder(arch, context.space, reads, self.history).unwind if data.with_code else None
        self._files = Fallback(arch, context.space, reads, self.history, data.with_cfi, by_code=by_code)

    def stack(self, found: list[PlainFrame], registers: Registers) -> Stack:
        """Return the whole stack.

        :param found: the frames up to the first one without a plain rule.
        :param registers: registers of that frame.
        """
        history = self.history
        while True:
            interrupted = not history.frames
            for level, (pc, sp, fp, cfa) in enumerate(found, len(history.frames)):
                history.add(Frame(level=level, pc=pc, sp=sp, fp=fp, cfa=cfa, unwinder="", interrupted=interrupted))
                interrupted = False
            if not interrupted and not registers.pc:
                return self._stack(Ending.REACHED, "")
            walk = self.walk(registers, interrupted)
            plain = self._walk_to_plain(walk)
            if plain is None:
                return self._stack(*self._ending(walk))
            found, registers = _follow(self._context, self._data, plain, interrupted=False)

    def walk(self, registers: Registers, interrupted: bool) -> Walk:
        """Return a walk from a frame outward."""
        context, data = self._context, self._data
        # A reference to it in this object would be a cycle, which keeps the copy of the stack in memory.
        other = FallbackUnwinder(NAME, self._without_row) if data.with_signal_frames else None
        read_register = context.read_register if interrupted else None
        read_word = context.memory.read_frame_word
        return Walk(
            arch=context.arch,
            modules=data.modules,
            registers=registers,
            read_word=read_word,
            read_register=read_register,
            fallback=other,
            skip=data.prefers_cfi,
            interrupted=interrupted,
        )

    def _without_row(
        self, registers: Registers, interrupted: bool, read_register: Callable[[int], int] | None
    ) -> UnwindResult | None:
        """Unwind a frame without SFrame; see :class:`sframe_unwind.unwind.walk.FallbackUnwinder`."""
        result = self._files.unwind(registers, interrupted, read_register)
        if result is not None or not self._data.with_frame_pointers:
            return result
        if isinstance(self._data.modules.results[lookup_address(registers.pc, interrupted)], Found):
            return None  # there is a row, but it leads to memory that was not copied
        return frame_pointer.unwind(self._context.arch, self._context.memory.read_word, registers, lambda _: True)

    def _walk_to_plain(self, walk: Walk) -> Registers | None:
        """Continue to the next frame with a plain rule, and return its registers; ``None``: the walk ended."""
        for count, frame in enumerate(walk):
            if count and not frame.interrupted and self._data.plain.find(lookup_address(frame.pc, False)) is not None:
                return Registers(frame.pc, frame.sp, frame.fp)
            self.history.add(frame)
        return None

    def _stack(self, ending: Ending, reason: str) -> Stack:
        found = self.history.frames
        return Stack(tuple(frame.pc for frame in found), tuple(frame.interrupted for frame in found), ending, reason)

    def _ending(self, walk: Walk) -> tuple[Ending, str]:
        """Return how a walk ended, and the reason if it failed."""
        context, last = self._context, self.history.frames[-1]
        if walk.end in (None, End.OUTERMOST, End.PC_ZERO) or _is_start(context.space, walk.end, last.pc):
            return Ending.REACHED, ""
        if walk.end is End.UNREADABLE and context.stack_is_cut and context.memory.is_not_copied(context.memory.missed):
            return Ending.CUT, ""
        return Ending.FAILED, _reason(context.space, self._data, lookup_address(last.pc, last.interrupted), walk.end)


def _is_start(space: Space, end: End | None, pc: int) -> bool:
    """Return whether a walk ended where the process began."""
    file = space.find(pc) if end is End.NO_DATA else None
    try:
        return file is not None and file.is_start(pc)
    except SFrameError:
        return False


def _reason(space: Space, data: UnwindData, lookup: int, end: End | None) -> str:
    """Return why a walk failed, in words that are equal for all samples that fail for this reason."""
    _, without_file = space.place(lookup)
    if without_file:
        return without_file
    if end is End.UNREADABLE:
        return "the rule leads to memory that is not of the stack"
    if data.with_code and end is End.NO_DATA:
        return NOT_BY_CODE
    if not data.modules.modules:
        return NO_CFI if end is End.NO_DATA else "the CFI cannot be carried out"
    result = data.modules.results[lookup]
    if isinstance(result, NoData):
        return result.reason
    if isinstance(result, Unusable):
        return result.error.what if isinstance(result.error, FormatError) else "the section is unusable"
    return "the row cannot be carried out"
