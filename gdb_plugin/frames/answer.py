"""The unwinder's answer for a frame that it claims: the frame's identity and the registers of its caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Callable

import gdb

from gdb_plugin.process.registers import Registers
from gdb_plugin.version import SHOWS_OUTERMOST
from sframe_unwind.address import ADDRESS_MASK, WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError, StepError
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind_rule import RegisterRule


class FrameId:
    """The identity of a frame in GDB: its CFA and the entry of its function."""

    __slots__ = ("pc", "sp")

    def __init__(self, sp: gdb.Value, pc: gdb.Value) -> None:
        self.sp = sp
        self.pc = pc


def caller_info(frame: gdb.PendingFrame, registers: Registers, caller: Caller, entry: int) -> gdb.UnwindInfo:
    """Return the answer for a frame with a caller: the caller's pc, SP and FP, and the registers of the thread.

    :param entry: address of the frame's function.
    """
    cfa = gdb.Value(caller.cfa)
    pc = gdb.Value(caller.pc)
    info = frame.create_unwind_info(FrameId(cfa, gdb.Value(entry)))
    save = info.add_saved_register
    for register in registers.caller_pc:
        save(register, pc)
    save(registers.sp, cfa if caller.sp == caller.cfa else gdb.Value(caller.sp))
    save(registers.fp, gdb.Value(caller.fp))
    if registers.ra is not None:
        # After the return the register still holds the address, as in DWARF CFI.
        save(registers.ra, pc)
    for register in registers.of_thread:
        try:  # costs less than suppress(), for each frame
            value = frame.read_register(register)
            if not value.is_optimized_out:
                save(register, value)
        except (gdb.error, ValueError):
            pass  # not known in this frame
    return info


def other_values(
    places: Iterable[tuple[int, RegisterRule]], evaluate: Callable[[RegisterRule], int]
) -> dict[int, int | None]:
    """Return the values of the caller's registers by DWARF number; ``None``: a value cannot be read.

    :param places: DWARF numbers and places of the registers.
    :param evaluate: returns the value at a place; see :func:`sframe_unwind.unwind.step.value_of`.
    """
    values: dict[int, int | None] = {}
    for number, place in places:
        values[number] = None
        with suppress(MemoryReadError, StepError):
            values[number] = evaluate(place)
    return values


def save_others(
    info: gdb.UnwindInfo,
    frame: gdb.PendingFrame,
    registers: Registers,
    arch: Arch,
    values: Mapping[int, int | None],
) -> list[int]:
    """Add the caller's callee-saved registers: those with a known value, and those that the frame did not change.

    :param values: DWARF number and value of each changed register; ``None``: the value is unknown.
    :return: the DWARF numbers of the registers whose value is unknown.
    """
    unknown = []
    for number in dict.fromkeys((*arch.preserved, *values)):
        register = registers.by_number.get(number)
        if register is None:
            continue
        try:
            value = frame.read_register(register)
            if number in values:
                known = values[number]
                if known is None:
                    unknown.append(number)
                    continue
                value = gdb.Value(known.to_bytes(WORD_SIZE, arch.byteorder), value.type)
            elif value.is_optimized_out:
                unknown.append(number)
                continue  # frames further in do not have the value
            info.add_saved_register(register, value)
        except (gdb.error, ValueError):
            unknown.append(number)  # unknown in this frame, or of another size
    return unknown


def save_all(info: gdb.UnwindInfo, frame: gdb.PendingFrame, registers: Registers) -> None:
    """Add all registers with their values in the frame: at a function's first instruction, they are the caller's."""
    for register in registers.kept:
        with suppress(gdb.error, ValueError):  # not known in this frame
            value = frame.read_register(register)
            if not value.is_optimized_out:
                info.add_saved_register(register, value)


def outermost_info(frame: gdb.PendingFrame, registers: Registers, arch: Arch, sp: int, entry: int) -> gdb.UnwindInfo:
    """Return the answer for a frame without a caller, which an unwinder in Python cannot express.

    GDB's DWARF unwinder can express it, so the frame is better left to GDB if there is CFI.  Otherwise, the answer has
    no pc of a caller, and GDB 18 prints "frame did not save the PC".  GDB 13 would end the command with an error.  So
    for GDB 13, the answer has a caller with the pc 0, and its return address register; GDB may show a frame for it.
    """
    # The CFA of the frame's callee.  On s390x it is above SP, and GDB takes a stack for corrupt whose CFAs fall.  In
    # GDB 13 that is wanted: it would otherwise go on with the frame whose pc is 0, and fail.
    cfa = sp - arch.sp_from_cfa & ADDRESS_MASK if SHOWS_OUTERMOST else sp
    info = frame.create_unwind_info(FrameId(gdb.Value(cfa), gdb.Value(entry)))
    if not SHOWS_OUTERMOST:
        for register in (*registers.caller_pc, *filter(None, (registers.ra,))):
            info.add_saved_register(register, gdb.Value(0))
        info.add_saved_register(registers.sp, gdb.Value(sp))
    return info
