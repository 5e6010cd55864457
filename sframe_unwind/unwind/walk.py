"""Walks the stack of one thread frame by frame, with the unwind data of the modules of its process."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Callable

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.modules import Found, LookupResult, Modules, NoData, Unusable
from sframe_unwind.unwind.other_stacks import OtherStacks
from sframe_unwind.unwind.step import Caller, check_outward, step

MAX_FRAMES = 1_000_000
"""Default limit for the number of frames of a walk."""


SFRAME = "sframe"
"""Name of the unwinder in frames that SFrame unwound."""
STUB_CODE = "plt code"
"""Name of the unwinder in frames of PLT stubs whose SFrame row is wrong: the stub's code gives the rule."""


class End(Enum):
    """Why a walk ended.  ``OUTERMOST`` and ``PC_ZERO`` are the normal ends of a stack."""

    OUTERMOST = "outermost frame"
    PC_ZERO = "return address is 0"
    NO_DATA = "no unwind data"
    CORRUPT = "corrupt data"
    UNREADABLE = "unreadable memory"
    LIMIT = "frame limit reached"


class Registers(NamedTuple):
    """The registers that every step computes."""

    pc: int
    sp: int
    fp: int


class Frame(NamedTuple):
    """One frame of the walk."""

    level: int
    pc: int
    sp: int
    fp: int
    cfa: int | None
    """``None``: the walk ends with this frame."""
    unwinder: str
    """Name of the unwinder that found this frame's caller: :data:`SFRAME` or a fallback unwinder; ``""``: none did."""
    interrupted: bool
    """The frame is the innermost one of a thread, or a signal interrupted it: the pc is not a return address."""


class UnwindResult(NamedTuple):
    """The result of a fallback unwinder for one frame."""

    caller: Caller | None
    """``None``: the frame is the outermost one."""
    signal: bool
    """The frame is a signal frame: the pc of its caller is not a return address."""
    read_register: ReadRegister | None
    """Reads the other registers of the caller; ``None``: they are not known.  A signal frame saves all of them."""
    unwinder: str = ""
    """Name of the unwinder, if it differs from :attr:`FallbackUnwinder.name`."""
    end: str = ""
    """Why the frame is the outermost one, if that is known."""
    switches_stack: bool = False
    """The caller is on another stack, which can be at lower addresses."""


class FallbackUnwinder(NamedTuple):
    """An unwinder for the frames without SFrame data."""

    name: str
    unwind: Callable[[Registers, bool, ReadRegister | None], UnwindResult | None]
    """``unwind(registers, interrupted, read_register)``; returns ``None`` if it has no data for the frame.

    ``interrupted`` is that of :attr:`Frame.interrupted`.  The exceptions are those of
    :func:`sframe_unwind.unwind.step.step`.
    """


class Walk:
    """An iterable over the frames of a stack.  After the iteration, :attr:`end` and :attr:`detail` tell why it ended.

    :param modules: the modules of the process.
    :param registers: the registers of the innermost frame.
    :param read_word: reads the memory of the process.
    :param read_register: reads the other registers of the innermost frame.
    :param fallback: unwinds the frames without SFrame data.
    :param pac_mask: see :func:`sframe_unwind.unwind.step.step`.
    :param limit: maximum number of frames.
    :param skip: returns whether to use the fallback unwinder for a lookup address even if SFrame covers it.
    :param interrupted: the pc of the innermost frame is the next instruction to execute; ``False``: it is a return
        address, as in a context that a call saved.
    :param other_stacks: accepts callers at lower addresses, on other stacks; ``None``: such a caller is an error.
    :param level: the level of the first frame, if the walk begins further out.
    """

    def __init__(
        self,
        arch: Arch,
        modules: Modules,
        registers: Registers,
        read_word: ReadWord,
        read_register: ReadRegister | None = None,
        fallback: FallbackUnwinder | None = None,
        pac_mask: int | None = None,
        limit: int = MAX_FRAMES,
        skip: Callable[[int], bool] | None = None,
        interrupted: bool = True,
        other_stacks: OtherStacks | None = None,
        level: int = 0,
    ) -> None:
        self._arch = arch
        self._modules = modules
        self._registers = registers
        self._read_word = read_word
        self._read_register = read_register
        self._fallback = fallback
        self._fallback_name = fallback.name if fallback else ""
        self._pac_mask = pac_mask
        self._limit = limit
        self._skip = skip
        self._interrupted = interrupted
        self._other_stacks = other_stacks
        self._level = level
        self.end: End | None = None
        self.detail = ""
        """Details of the end: the reason, or an error message."""

    def __iter__(self) -> Iterator[Frame]:
        arch, read_word, pac_mask = self._arch, self._read_word, self._pac_mask
        results, skip = self._modules.results, self._skip
        pc, sp, fp = self._registers
        interrupted, read_register = self._interrupted, self._read_register
        for level in range(self._level, self._limit):
            if pc == 0 and level:
                self.end = End.PC_ZERO
                return
            lookup = lookup_address(pc, interrupted)
            result = results[lookup]
            caller = None
            if isinstance(result, Found) and not (skip and skip(lookup)):
                rule, signal = result.rule, result.signal
                if rule.cfa is None:
                    self.end = End.OUTERMOST
                    yield Frame(level=level, pc=pc, sp=sp, fp=fp, cfa=None, unwinder=SFRAME, interrupted=interrupted)
                    return
                try:
                    caller = step(
                        rule=rule,
                        arch=arch,
                        sp=sp,
                        fp=fp,
                        read_word=read_word,
                        read_register=read_register,
                        pac_mask=pac_mask,
                    )
                    if caller.sp <= sp and not signal:
                        self._check(Registers(pc, sp, fp), caller, interrupted)
                    unwinder, read_register = STUB_CODE if result.is_refuted else SFRAME, None
                except SFrameError as error:
                    caller, result = None, Unusable(error, result.module)
            if caller is None:
                unwound = self._unwind_by_fallback(Registers(pc, sp, fp), interrupted, read_register, result)
                if unwound is None:
                    yield Frame(level=level, pc=pc, sp=sp, fp=fp, cfa=None, unwinder="", interrupted=interrupted)
                    return
                caller, signal, read_register, name = unwound[:4]
                unwinder = name or self._fallback_name
                if caller is None:
                    self.end, self.detail = End.OUTERMOST, unwound.end
                    yield Frame(level=level, pc=pc, sp=sp, fp=fp, cfa=None, unwinder=unwinder, interrupted=interrupted)
                    return
            cfa, caller_pc, caller_sp, caller_fp = caller
            # A quarter of the time of calling the class with keywords.
            yield tuple.__new__(Frame, (level, pc, sp, fp, cfa, unwinder, interrupted))
            pc, sp, fp, interrupted = caller_pc, caller_sp, caller_fp, signal
        self.end, self.detail = End.LIMIT, f"{self._limit} frames"

    def _check(self, registers: Registers, caller: Caller, interrupted: bool) -> None:
        """Check that the caller's frame is further out, or on another stack.

        :raises StepError: it is neither.
        """
        if self._other_stacks is None or not self._other_stacks.accepts(registers.sp, caller):
            check_outward(registers.sp, caller.cfa, caller.sp, interrupted and caller.pc != registers.pc)

    def _unwind_by_fallback(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None, result: LookupResult
    ) -> UnwindResult | None:
        """Unwind a frame by the fallback unwinder.  If that fails, set the end of the walk and return ``None``.

        :param result: why SFrame does not unwind the frame.
        """
        try:
            unwound = self._fallback.unwind(registers, interrupted, read_register) if self._fallback else None
            if unwound is not None:
                caller = unwound.caller
                leaves_stack = unwound.signal or unwound.switches_stack
                if caller is not None and caller.sp <= registers.sp and not leaves_stack:
                    self._check(registers, caller, interrupted)
                return unwound
        except SFrameError as error:
            self._fail(error)
            return None
        if isinstance(result, Unusable):
            self._fail(result.error)
        else:
            self.end = End.NO_DATA
            self.detail = result.reason if isinstance(result, NoData) else f"left to {self._fallback_name}"
        return None

    def _fail(self, error: SFrameError) -> None:
        self.end = End.UNREADABLE if isinstance(error, MemoryReadError) else End.CORRUPT
        self.detail = str(error)
