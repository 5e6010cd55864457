"""Layer 4: the stack of one thread, frame by frame, over the modules of a process."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Callable, NamedTuple

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind.modules import Found, LookupResult, Modules, NoData, Unusable
from sframe_unwind.unwind.step import Caller, check_outward, step

MAX_FRAMES = 1_000_000
"""Where a walk ends at the latest, whatever the stack says."""


class End(Enum):
    """Why a walk ended.  The first two are the normal ends; no two of the others mean the same."""

    OUTERMOST = "outermost frame"
    PC_ZERO = "return address is 0"
    NO_DATA = "no unwind data"
    CORRUPT = "corrupt data"
    UNREADABLE = "unreadable memory"
    LIMIT = "frame limit reached"


class Registers(NamedTuple):
    """The registers of a frame that every unwinder knows."""

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
    """``None`` where the walk ends with this frame."""
    unwinder: str
    """Who found this frame's caller: ``"sframe"``, or the name of the other unwinder; ``""`` where nobody did."""
    interrupted: bool
    """pc is where the frame goes on, not a return address."""


class UnwindResult(NamedTuple):
    """What another unwinder says of a frame."""

    caller: Caller | None
    """``None``: the frame is the outermost one."""
    signal: bool
    """The frame is a signal frame: its caller was interrupted, not left by a call."""
    read_register: ReadRegister | None
    """The caller's other registers, where they are known: behind a signal frame, mostly."""
    unwinder: str = ""
    """Who says so, where the other unwinder is several."""


class FallbackUnwinder(NamedTuple):
    """Another unwinder, asked for the frames that SFrame does not cover."""

    name: str
    unwind: Callable[[Registers, bool, ReadRegister | None], UnwindResult | None]
    """``unwind(registers, live, read_register)``; ``None`` where it knows nothing either.

    ``live``: pc is where the frame goes on, not a return address.  It raises what
    :func:`sframe_unwind.unwind.step.step` raises.
    """


class Walk:
    """Iterate over the frames of a stack; afterwards :attr:`end` and :attr:`detail` say why there are no more.

    :param modules: what the process has loaded.
    :param registers: of the innermost frame.
    :param read_word: the memory of the process.
    :param read_register: the other registers of the innermost frame.
    :param other: who unwinds frames without SFrame; the walk goes on behind them.
    :param pac_mask: see :func:`sframe_unwind.unwind.step.step`.
    :param limit: how many frames at the most.
    :param leave: lookup addresses whose frames are the other unwinder's even where SFrame covers them.
    """

    def __init__(
        self,
        arch: Arch,
        modules: Modules,
        registers: Registers,
        read_word: ReadWord,
        read_register: ReadRegister | None = None,
        other: FallbackUnwinder | None = None,
        pac_mask: int | None = None,
        limit: int = MAX_FRAMES,
        leave: Callable[[int], bool] | None = None,
    ) -> None:
        self._arch = arch
        self._modules = modules
        self._registers = registers
        self._read_word = read_word
        self._read_register = read_register
        self._other = other
        self._other_name = other.name if other else ""
        self._pac_mask = pac_mask
        self._limit = limit
        self._leave = leave
        self.end: End | None = None
        self.detail = ""
        """The particulars of the end, in a few words."""

    def __iter__(self) -> Iterator[Frame]:
        arch, read_word, pac_mask = self._arch, self._read_word, self._pac_mask
        answers, leave = self._modules.answers, self._leave
        pc, sp, fp = self._registers
        interrupted, read_register = True, self._read_register
        for level in range(self._limit):
            if pc == 0 and level:
                self.end = End.PC_ZERO
                return
            lookup = lookup_address(pc, interrupted)
            answer = answers[lookup]
            caller = None
            if isinstance(answer, Found) and not (leave and leave(lookup)):
                rule, signal = answer.rule, answer.signal
                if rule.cfa is None:
                    self.end = End.OUTERMOST
                    yield Frame(level, pc, sp, fp, None, "sframe", interrupted)
                    return
                try:
                    caller = step(rule, arch, sp, fp, read_word, read_register, pac_mask)
                    if caller.sp <= sp and not signal:
                        check_outward(sp, caller.cfa, caller.sp, interrupted and caller.pc != pc)
                    unwinder, read_register = "sframe", None
                except SFrameError as error:
                    caller, answer = None, Unusable(error, answer.module)
            if caller is None:
                handed = self._hand_over(Registers(pc, sp, fp), interrupted, read_register, answer)
                if handed is None:
                    yield Frame(level, pc, sp, fp, None, "", interrupted)
                    return
                caller, signal, read_register, name = handed
                unwinder = name or self._other_name
                if caller is None:
                    self.end = End.OUTERMOST
                    yield Frame(level, pc, sp, fp, None, unwinder, interrupted)
                    return
            cfa, caller_pc, caller_sp, caller_fp = caller
            yield Frame(level, pc, sp, fp, cfa, unwinder, interrupted)
            pc, sp, fp, interrupted = caller_pc, caller_sp, caller_fp, signal
        self.end, self.detail = End.LIMIT, f"{self._limit} frames"

    def _hand_over(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None, answer: LookupResult
    ) -> UnwindResult | None:
        """Ask the other unwinder; without a usable answer of its, set the end to why SFrame has none."""
        try:
            handed = self._other.unwind(registers, interrupted, read_register) if self._other else None
            if handed is not None:
                caller = handed.caller
                if caller is not None and caller.sp <= registers.sp and not handed.signal:
                    check_outward(registers.sp, caller.cfa, caller.sp, interrupted and caller.pc != registers.pc)
                return handed
        except SFrameError as error:
            self._fail(error)
            return None
        if isinstance(answer, Unusable):
            self._fail(answer.error)
        else:
            self.end = End.NO_DATA
            self.detail = answer.reason if isinstance(answer, NoData) else f"left to {self._other_name}"
        return None

    def _fail(self, error: SFrameError) -> None:
        self.end = End.UNREADABLE if isinstance(error, MemoryReadError) else End.CORRUPT
        self.detail = str(error)
