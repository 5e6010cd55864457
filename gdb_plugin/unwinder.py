"""The unwinder that GDB asks for every frame."""

from __future__ import annotations

from typing import Callable

import gdb
from gdb.unwinder import Unwinder

from gdb_plugin.liveness import Chain
from gdb_plugin.memory import process_gone
from gdb_plugin.names import FrameNames
from gdb_plugin.process import Process, Registers
from gdb_plugin.processes import Processes
from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.unwind.modules import Found
from sframe_unwind.unwind.step import Caller, check_outward, other_registers, step

ALWAYS, FALLBACK, OFF = "always", "fallback", "off"
MODES = (ALWAYS, FALLBACK, OFF)

_TELLS_PC = hasattr(gdb.PendingFrame, "pc")
"""Since GDB 14.  Reading a register takes GDB the longer the more frames there are; this does not."""


class FrameId:
    """What GDB identifies a frame by: its CFA and its function's start."""

    __slots__ = ("pc", "sp")

    def __init__(self, sp: gdb.Value, pc: gdb.Value) -> None:
        self.sp = sp
        self.pc = pc


class SFrameUnwinder(Unwinder):
    """Claims the frames that SFrame covers, as the mode says.

    :param names: shows its names in all modes but ``off``.
    :param report: shows one line to the user.
    """

    def __init__(self, processes: Processes, names: FrameNames, report: Callable[[str], None]) -> None:
        super().__init__("sframe")
        self.mode = ALWAYS
        self.claimed: set[tuple[int, int]] | None = None
        """While somebody wants to know: pc and SP of each frame that was claimed."""
        self.refused: dict[tuple[int, int], str] = {}
        """Likewise: why SFrame's answer for a frame was not used."""
        self._processes = processes
        self._names = names
        self._report = report
        self._chain = Chain()
        self._failures: set[str] = set()

    def __call__(self, frame: gdb.PendingFrame) -> gdb.UnwindInfo | None:
        """Return the caller's registers, or ``None`` for GDB's own unwinders to go on.

        Nothing may be raised here: GDB would end the whole backtrace with it.  Ctrl-C is no Exception and passes.
        """
        if self.mode == OFF:
            return None
        try:
            process = self._processes.current(frame)
            if process is None:
                return None
            self._chain.follow()
            info = self._unwind(frame, process)
        except (SFrameError, gdb.error):
            info = None  # no registers, no memory: no frame of ours
        except KeyboardInterrupt:
            # GDB has noted by now that the frame has no caller, and would show the stack cut off from here on.
            gdb.post_event(gdb.invalidate_cached_frames)
            raise
        except Exception as error:  # noqa: BLE001  # a bug of ours must not cost the user a backtrace
            if not self._processes.is_gone():
                self._report_once(f"internal error, frame left to GDB: {type(error).__name__}: {error}")
                return None
            info = None
        if info is None:
            if self._processes.is_gone():
                raise process_gone()
            self._chain.note_declined(frame)
        return info

    def set_mode(self, mode: str) -> None:
        """Change the mode, for frames that are already unwound too."""
        self.mode = mode
        self._names.enabled = mode != OFF
        self._chain.forget()
        gdb.invalidate_cached_frames()

    def _unwind(self, frame: gdb.PendingFrame, process: Process) -> gdb.UnwindInfo | None:
        read = frame.read_register
        registers = process.registers(frame)
        pc = frame.pc() if _TELLS_PC else int(read(registers.pc)) & ADDRESS_MASK
        sp = int(read(registers.sp)) & ADDRESS_MASK
        self._chain.enter(frame, pc, sp)
        answers = process.modules.answers
        answer = answers[pc - 1]
        at_pc = answers[pc]
        if not (isinstance(answer, Found) or isinstance(at_pc, Found)):
            return None
        interrupted = None
        if not (isinstance(answer, Found) and isinstance(at_pc, Found) and answer.rule is at_pc.rule):
            # Whether pc is a return address makes a difference here.
            interrupted = self._chain.is_interrupted(frame, pc, sp)
            answer = at_pc if interrupted else answer
        if not isinstance(answer, Found):
            return None
        address = pc if interrupted else pc - 1
        if self.mode == FALLBACK and process.modules.has_cfi(address):
            return None
        rule, signal, match, _, needs_registers = answer
        start = match.function.start
        if rule.cfa is None:
            return self._outermost(frame, process, pc, sp, start)
        if needs_registers and interrupted is None:
            interrupted = self._chain.is_interrupted(frame, pc, sp)
        try:
            fp = int(read(registers.fp)) & ADDRESS_MASK
            # GDB may still know the callee-saved registers of other frames than the innermost one.
            reader = process.reader(frame) if interrupted or rule.others is not None else None
            mask = process.pac_mask(frame) if rule.ra_signed else None
            caller = step(rule, process.arch, sp, fp, process.read_word, reader, mask)
            if caller.sp <= sp and not signal:
                innermost = self._chain.is_interrupted(frame, pc, sp)
                check_outward(sp, caller.cfa, caller.sp, innermost and caller.pc != pc)
        except (SFrameError, gdb.error) as error:
            self._note_refused(pc, sp, str(error))
            return None
        if self.claimed is not None:
            self.claimed.add((pc, sp))
        elif (
            not (rule.ra_signed and mask is None)  # GDB needs the target to tell the mask
            and process.hides_tail_calls(start, caller.pc)
            and process.modules.has_cfi(address)
        ):
            return None  # for the debugger's own display; who asks for SFrame's frames gets them all
        self._chain.note_claimed(caller.pc, caller.sp, signal)
        info = _unwind_info(frame, registers, caller, start)
        if rule.others is not None:
            values = other_registers(rule, process.arch, caller.cfa, sp, fp, process.read_word, process.reader(frame))
            _save_others(info, frame, registers, process.arch, values)
        return info

    def _outermost(
        self, frame: gdb.PendingFrame, process: Process, pc: int, sp: int, start: int
    ) -> gdb.UnwindInfo | None:
        """Tell GDB that a frame has no caller, for which an unwinder in Python has no words.

        GDB's DWARF unwinder has, so the frame is left to it where there is CFI.  Else no caller's pc is given, and
        GDB 18 says "frame did not save the PC"; GDB 13 would end the command with an error, so it is given a pc of 0
        and shows one frame for that.
        """
        if self.claimed is not None:
            self.claimed.add((pc, sp))
        if process.modules.has_cfi(pc - 1):
            return None
        info = frame.create_unwind_info(FrameId(gdb.Value(sp), gdb.Value(start)))
        if not hasattr(frame, "pc"):
            registers = process.registers(frame)
            for register in registers.caller_pc:
                info.add_saved_register(register, gdb.Value(0))
            info.add_saved_register(registers.sp, gdb.Value(sp))
        return info

    def _note_refused(self, pc: int, sp: int, why: str) -> None:
        if self.claimed is not None:
            self.refused[pc, sp] = why

    def _report_once(self, line: str) -> None:
        if line not in self._failures:
            self._failures.add(line)
            self._report(line)


def _unwind_info(frame: gdb.PendingFrame, registers: Registers, caller: Caller, start: int) -> gdb.UnwindInfo:
    cfa = gdb.Value(caller.cfa)
    pc = gdb.Value(caller.pc)
    info = frame.create_unwind_info(FrameId(cfa, gdb.Value(start)))
    save = info.add_saved_register
    for register in registers.caller_pc:
        save(register, pc)
    save(registers.sp, cfa if caller.sp == caller.cfa else gdb.Value(caller.sp))
    save(registers.fp, gdb.Value(caller.fp))
    if registers.ra is not None:
        # After the return the register still holds the address; DWARF's CFI says the same.
        save(registers.ra, pc)
    return info


def _save_others(
    info: gdb.UnwindInfo, frame: gdb.PendingFrame, registers: Registers, arch: Arch, values: dict[int, int]
) -> None:
    """Give the caller its callee-saved registers: those with a value, and the others as they are in this frame."""
    big = arch.byteorder == "big"
    for number in dict.fromkeys((*arch.preserved, *values)):
        register = registers.by_number.get(number)
        if register is None:
            continue
        try:
            value = frame.read_register(register)
            if number in values:
                value = gdb.Value(values[number].to_bytes(WORD_SIZE, "big" if big else "little"), value.type)
            elif value.is_optimized_out:
                continue  # a frame further in does not tell
            info.add_saved_register(register, value)
        except (gdb.error, ValueError):
            pass  # not known in this frame, or of another size
