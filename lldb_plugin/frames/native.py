"""LLDB's own stack of one thread, as the unwinder for the frames that SFrame does not cover.

Frames are read when LLDB permits it: in ``applies_to_thread``, or in a command.  Access to an SBFrame while LLDB asks a
provider for its frames deadlocks LLDB 23.1.0.
"""

from __future__ import annotations

import functools
import itertools

import lldb

from lldb_plugin.frames.native_frames import Frames, NativeFrame, NoFramesError, frames_from, known
from lldb_plugin.process.process import Process
from sframe_unwind.address import lookup_address
from sframe_unwind.debugger.settings import FALLBACK
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadAhead, ReadRegister, WordReader
from sframe_unwind.unwind.step import Caller, step
from sframe_unwind.unwind.walk import FallbackUnwinder, Registers, UnwindResult

NAME = "lldb"


class NativeStack:
    """The frames of a thread by LLDB's own unwinder.

    :param frames: LLDB's own frames, during the life of this object.
    :param limit: maximum number of groups of frames; ``None``: all.
    """

    def __init__(self, process: Process, frames: Frames, limit: int | None = None) -> None:
        self._process = process
        self._listed = frames
        self.frames = tuple(itertools.islice(frames_from(frames, 0), limit))
        if not self.frames:
            raise NoFramesError("the thread has no frames")
        # Of frames with the same pc and SP, the first one counts.  LLDB finds a frame by function and CFA.  If it
        # computes the same CFA for a frame further out in the same function, that frame reads like the first one here,
        # although `bt` shows another pc for it.
        self._numbers: dict[tuple[int, int | None], int] = {}
        for number, frame in enumerate(self.frames):
            self._numbers.setdefault((frame.pc, frame.sp), number)
        self._results: dict[NativeFrame, UnwindResult | None] = {}
        self._read_word = WordReader(ReadAhead(process.read), process.arch.byteorder)
        inner = self.frames[0]
        self.innermost = Registers(inner.pc, inner.sp or 0, self.fp(inner) or 0)
        self.read_register = self._register_reader(inner)

    @property
    def count(self) -> int:
        """The number of frames that LLDB shows."""
        return sum(len(frame.indexes) for frame in self.frames)

    def fp(self, frame: NativeFrame) -> int | None:
        """Return the frame pointer of a frame; ``None``: LLDB does not know it.

        The cost grows with the number of frames inside this one.
        """
        return known(self._at(frame).GetFP())

    def cfa(self, frame: NativeFrame) -> int | None:
        """Return the CFA of a frame; ``None``: LLDB does not know it."""
        return known(self._at(frame).GetCFA())

    def find(self, pc: int, sp: int) -> NativeFrame | None:
        """Return the frame with a pc and SP; ``None``: there is none."""
        number = self._numbers.get((pc, sp))
        return None if number is None else self.frames[number]

    def caller(self, frame: NativeFrame) -> NativeFrame | None:
        """Return the next frame further out; ``None``: there is none."""
        number = self._numbers[frame.pc, frame.sp] + 1
        return self.frames[number] if number < len(self.frames) else None

    def other(self) -> FallbackUnwinder:
        """Return this stack as the unwinder for frames that SFrame does not cover."""
        return FallbackUnwinder(NAME, self._unwind)

    def _unwind(
        self, registers: Registers, interrupted: bool, read_register: ReadRegister | None
    ) -> UnwindResult | None:
        frame = self.find(registers.pc, registers.sp)
        if frame is None:
            return None
        if frame not in self._results:
            caller = self.caller(frame)
            self._results[frame] = None if caller is None else self._result(registers, interrupted, frame, caller)
        return self._results[frame]

    def _result(
        self, registers: Registers, interrupted: bool, frame: NativeFrame, caller: NativeFrame
    ) -> UnwindResult | None:
        if caller.sp is None or self._is_signed(caller.pc):
            return None
        signal = self._process.is_trampoline(frame.pc) or self._is_marked(registers.pc, interrupted)
        cfa = caller.sp - self._process.arch.sp_from_cfa
        reader = self._register_reader(caller) if signal else None
        fp = self._fp_by_cfi(registers, interrupted, caller)
        if fp is None:
            fp = self.fp(caller) or 0
        return UnwindResult(Caller(cfa, caller.pc, caller.sp, fp), signal, reader)

    def _is_signed(self, pc: int) -> bool:
        """Return whether a pc holds a signature, which LLDB does not remove unless it knows the mask."""
        arch = self._process.arch
        return pc != arch.strip(pc, self._process.pac_mask or arch.pac_mask)

    def _is_marked(self, pc: int, interrupted: bool) -> bool:
        """Return whether CFI marks the frame as a signal frame, as it does where a runtime changes stacks."""
        try:
            cfi = self._process.modules.cfi_match(lookup_address(pc, interrupted))
        except SFrameError:
            return False
        return cfi is not None and cfi.signal

    def _fp_by_cfi(self, registers: Registers, interrupted: bool, caller: NativeFrame) -> int | None:
        """Return the frame pointer of a caller by CFI; ``None``: there is no CFI, or LLDB has not unwound by it."""
        followed = self._process.shared[FALLBACK][lookup_address(registers.pc, interrupted)]
        if followed is None or followed.rule.cfa is None:
            return None
        _, sp, fp = registers
        try:
            by_cfi = step(
                rule=followed.rule,
                arch=self._process.arch,
                sp=sp,
                fp=fp,
                read_word=self._read_word,
                read_register=None,
                pac_mask=self._process.pac_mask,
            )
        except SFrameError:
            return None
        return by_cfi.fp if (by_cfi.pc, by_cfi.sp) == (caller.pc, caller.sp) else None

    def _register_reader(self, frame: NativeFrame) -> ReadRegister:
        """Return the function that reads registers of a frame, each once."""
        return functools.cache(self._process.register_reader(self._at(frame)))

    def _at(self, frame: NativeFrame) -> lldb.SBFrame:
        return self._listed.GetFrameAtIndex(frame.indexes[-1])
