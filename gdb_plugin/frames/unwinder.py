"""The unwinder that GDB calls for every frame."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Callable

import gdb
from gdb.unwinder import Unwinder

from gdb_plugin.frames.answer import caller_info, other_values, outermost_info, save_all, save_others
from gdb_plugin.frames.entry_code import entry_code_info
from gdb_plugin.frames.frame_history import LastFrame
from gdb_plugin.frames.frame_names import FrameNames
from gdb_plugin.frames.plans import LEFT, Claim
from gdb_plugin.frames.unwinding import Inferiors, Unwinding
from gdb_plugin.process.functions import entry_of
from gdb_plugin.process.memory import ProcessGoneError, process_gone, read
from gdb_plugin.process.process import Process
from gdb_plugin.process.registers import Registers
from gdb_plugin.version import TELLS_PC
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.debugger.settings import OFF, Settings
from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind import walk
from sframe_unwind.unwind.code_fallback import may_return_to
from sframe_unwind.unwind.step import Caller, check_outward, step, value_of
from sframe_unwind.unwind_rule import UnwindRule


class Recorder:
    """Records the results for the frames that GDB asked for, by pc and SP; used to show the stack by SFrame."""

    def __init__(self) -> None:
        self.claimed: set[tuple[int, int]] = set()
        self.refused: dict[tuple[int, int], str] = {}
        """Why SFrame's answer for a frame was not used."""


class _Asked(NamedTuple):
    """A pending frame whose rule is applied."""

    frame: gdb.PendingFrame
    unwinding: Unwinding
    registers: Registers
    last: LastFrame
    level: int
    pc: int
    sp: int
    fp: int

    def is_interrupted(self) -> bool:
        return self.unwinding.history.is_interrupted(self.last, self.level, self.pc, self.sp)

    @property
    def process(self) -> Process:
        return self.unwinding.process


class SFrameUnwinder(Unwinder):
    """Claims the frames that SFrame covers, according to the settings.

    :param inferiors: finds the state for the selected inferior.
    :param names: shows names of frames in all modes except ``off``.
    :param report: shows one line to the user.
    """

    def __init__(self, inferiors: Inferiors, names: FrameNames, report: Callable[[str], None]) -> None:
        super().__init__("sframe")
        self.settings = Settings()
        self._inferiors = inferiors
        self.names = names
        self._report = report
        self._recorder: Recorder | None = None
        self._failures: set[str] = set()
        self._rests = False

    def __call__(self, frame: gdb.PendingFrame) -> gdb.UnwindInfo | None:
        """Return the caller's registers; ``None``: GDB's own unwinders shall unwind the frame.

        GDB ends the whole backtrace if an exception leaves this method.  That is wanted only for Ctrl-C
        (``KeyboardInterrupt``), and after the connection to the process broke.
        """
        if self.settings.mode == OFF or self._rests:
            return None
        try:
            unwinding = self._inferiors.current(frame)
            return None if unwinding is None else self._unwind(frame, unwinding)
        except (SFrameError, gdb.error):
            pass  # without registers or memory, the frame is left to GDB
        except ProcessGoneError:
            # GDB has no frames left to forget.  GDB 13 crashes at its end if an event was posted and did not run.
            raise
        except KeyboardInterrupt:
            # GDB has already recorded that the frame has no caller, and would show a stack that ends here.
            gdb.post_event(gdb.invalidate_cached_frames)
            raise
        except Exception as error:  # noqa: BLE001  # a bug of ours must not cost the user a backtrace
            if not self._inferiors.is_gone():
                self._report_once(f"internal error, frame left to GDB: {type(error).__name__}: {error}")
                return None
        if self._inferiors.is_gone():
            raise process_gone()
        return None

    def rest(self) -> bool:
        """Leave all frames to GDB until the process runs; return whether it was not so before."""
        if self.settings.mode == OFF or self._rests:
            return False
        self._rests = True
        gdb.events.cont.connect(self._resume)
        return True

    def _resume(self, event: object) -> None:
        self._rests = False
        gdb.events.cont.disconnect(self._resume)

    def set(self, settings: Settings, recorder: Recorder | None = None) -> None:
        """Change the settings, also for frames that are already unwound.

        :param recorder: records all frames from now on.
        """
        self.settings = settings
        self._recorder = recorder
        gdb.invalidate_cached_frames()

    def _unwind(self, frame: gdb.PendingFrame, unwinding: Unwinding) -> gdb.UnwindInfo | None:
        level, history, process = frame.level(), unwinding.history, unwinding.process
        pc = unwinding.outer_frames.known_pc(level)
        if pc is not None:
            history.last = (level, pc, None, False)
            return None
        pc = frame.pc() if TELLS_PC else int(frame.read_register(process.registers(frame).pc)) & ADDRESS_MASK
        last, history.last = history.last, (level, pc, None, False)
        if level <= last[0] and unwinding.popping.unknown:
            self._begin_chain(frame, unwinding, pc)
        if process.run_time is not None and self._begins(frame, unwinding, last, level, pc):
            unwinding.look_again()
        plan = unwinding.plan(frame, pc, self.settings)
        if plan is LEFT:  # most frames: these lines determine the cost of a backtrace
            if unwinding.outer_frames.left(level, pc):
                sp, fp = _sp_and_fp(frame, process.registers(frame))
                if not history.is_interrupted(last, level, pc, sp):  # a walk looks up the pc as a return address
                    unwinding.outer_frames.walk(walk.Registers(pc, sp, fp))
            return None
        unwinding.outer_frames.forget()
        registers = process.registers(frame)
        sp, fp = _sp_and_fp(frame, registers)
        if plan.outermost is not None:
            return outermost_info(frame, registers, process.arch, sp, plan.outermost)
        place = plan.place if level else plan.entered
        if place is not None:
            return entry_code_info(frame, unwinding, place, (pc, sp, fp), not level)
        asked = _Asked(
            frame=frame, unwinding=unwinding, registers=registers, last=last, level=level, pc=pc, sp=sp, fp=fp
        )
        interrupted = asked.is_interrupted() if plan.asks else None
        claim = plan.interrupted if interrupted else plan.calling
        if claim is None and plan.untold:
            return (
                None
                if not level and self._is_just_entered(process, sp)
                else outermost_info(frame, registers, process.arch, sp, entry_of(pc) or pc)
            )
        if claim is not None:
            info = self._claim(asked, claim, interrupted)
            return None if claim.spares_innermost and not level else info
        # The return address of a leaf function is not in memory.  A return address can be after the last instruction
        # of a function, where the next function, a leaf, starts.
        if plan.leaf is not None and asked.is_interrupted():
            with suppress(SFrameError, gdb.error):
                caller = _step(asked, plan.leaf, True)
                history.last = (level, pc, (caller.pc, caller.sp), False)
        return None

    @staticmethod
    def _is_just_entered(process: Process, sp: int) -> bool:
        """Return whether a call may just have led to the innermost frame, as GDB assumes where nothing tells.

        A return address register tells nothing: it keeps the last address after the return.
        """
        process.read_word.forget()
        return process.arch.ra is None and may_return_to(process.arch, process.read_word(sp), read)

    @staticmethod
    def _begins(frame: gdb.PendingFrame, unwinding: Unwinding, last: LastFrame, level: int, pc: int) -> bool:
        """Return whether the frame may begin a new chain, so that the process may have run since the last frame."""
        sp = int(frame.read_register(unwinding.process.registers(frame).sp)) & ADDRESS_MASK
        return unwinding.history.is_interrupted(last, level, pc, sp)

    def _claim(self, asked: _Asked, claim: Claim, interrupted: bool | None) -> gdb.UnwindInfo | None:
        """Return GDB's answer for a frame to claim; ``None``: its rule cannot be applied."""
        frame, process, registers, recorder = asked.frame, asked.process, asked.registers, self._recorder
        rule, signal = claim.found.rule, claim.found.signal
        if rule.cfa is None:
            if recorder is not None:
                recorder.claimed.add((asked.pc, asked.sp))
            return None if claim.has_cfi else outermost_info(frame, registers, process.arch, asked.sp, claim.entry)
        try:
            caller = _step(asked, rule, interrupted)
            if caller.sp <= asked.sp and not signal:
                check_outward(asked.sp, caller.cfa, caller.sp, asked.is_interrupted() and caller.pc != asked.pc)
        except (SFrameError, gdb.error) as error:
            if recorder is not None:
                recorder.refused[asked.pc, asked.sp] = str(error)
            return None
        if recorder is not None:
            recorder.claimed.add((asked.pc, asked.sp))
        asked.unwinding.history.last = (asked.level, asked.pc, (caller.pc, caller.sp), signal)
        info = caller_info(frame, registers, caller, claim.entry)
        unknown: Iterable[int] = process.arch.preserved
        if claim.others is not None:
            unknown = save_others(info, frame, registers, process.arch, _other_values(asked, claim, caller))
        if claim.at_entry:
            save_all(info, frame, registers)
        elif unknown:
            asked.unwinding.popping.note(asked.level, caller.pc, caller.sp, unknown)
        return info

    def _begin_chain(self, frame: gdb.PendingFrame, unwinding: Unwinding, pc: int) -> None:
        """Warn if GDB has popped to the innermost frame, some of whose registers are unknown."""
        process = unwinding.process
        unknown = unwinding.popping.begin(pc, int(frame.read_register(process.registers(frame).sp)) & ADDRESS_MASK)
        if unknown and not self._inferiors.is_running():
            names = ", ".join(process.arch.register_name(number) for number in unknown)
            self._report(
                f"GDB left a function without restoring its caller's {names}, which SFrame does not describe, so the"
                " program may go wrong; 'return' refuses that, MI's -exec-return asks nobody"
            )

    def _report_once(self, line: str) -> None:
        if line not in self._failures:
            self._failures.add(line)
            self._report(line)


def _sp_and_fp(frame: gdb.PendingFrame, registers: Registers) -> tuple[int, int]:
    read_register = frame.read_register
    return int(read_register(registers.sp)) & ADDRESS_MASK, int(read_register(registers.fp)) & ADDRESS_MASK


def _step(asked: _Asked, rule: UnwindRule, interrupted: bool | None) -> Caller:
    """Apply a rule to the present registers and memory."""
    process, frame, registers = asked.process, asked.frame, asked.registers
    process.read_word.forget()
    # In frames other than the innermost one, GDB may still know the callee-saved registers.
    reader = registers.reader(frame) if interrupted or rule.others is not None else None
    mask = registers.pac_mask(frame) if rule.ra_signed else None
    return step(
        rule=rule,
        arch=process.arch,
        sp=asked.sp,
        fp=asked.fp,
        read_word=process.read_word,
        read_register=reader,
        pac_mask=mask,
    )


def _other_values(asked: _Asked, claim: Claim, caller: Caller) -> dict[int, int | None]:
    """Return the caller's registers whose places the unwind data has; ``None``: a value cannot be read."""
    process, reader = asked.process, asked.registers.reader(asked.frame)
    evaluate = partial(
        value_of,
        arch=process.arch,
        cfa=caller.cfa,
        sp=asked.sp,
        fp=asked.fp,
        read_word=process.read_word,
        read_register=reader,
    )
    return other_values(claim.others or (), evaluate)
