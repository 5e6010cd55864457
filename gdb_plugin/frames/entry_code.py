"""GDB's answer for entry code of a kernel, where CFI is incomplete."""

from __future__ import annotations

from functools import partial

import gdb

from gdb_plugin.frames.answer import caller_info, other_values, outermost_info, save_others
from gdb_plugin.frames.unwinding import Unwinding
from gdb_plugin.process.functions import entry_of
from gdb_plugin.process.process import Process
from sframe_unwind.address import lookup_address
from sframe_unwind.arch import PlaceKind
from sframe_unwind.kernel.entry_code import EntryPlace
from sframe_unwind.kernel.unwinder import KernelUnwinder
from sframe_unwind.unwind.step import Caller, value_of
from sframe_unwind.unwind.walk import Registers


def entry_code_info(
    frame: gdb.PendingFrame,
    unwinding: Unwinding,
    place: EntryPlace,
    registers_here: tuple[int, int, int],
    interrupted: bool,
) -> gdb.UnwindInfo | None:
    """Return the caller's registers; ``None``: GDB's own unwinder has them.

    :param registers_here: pc, SP and frame pointer of the frame.
    :param interrupted: pc is the next instruction, not a return address.
    :raises SFrameError: the stack cannot be read, or contradicts ORC.
    """
    process = unwinding.process
    kernel = process.kernel
    if kernel is None:
        return None
    process.read_word.forget()
    pc, sp, _ = registers_here
    found = KernelUnwinder(kernel, process.read_word).unwind(Registers(*registers_here), interrupted)
    if found is None:
        return None
    registers = process.registers(frame)
    entry = entry_of(lookup_address(pc, interrupted)) or place.start
    if found.caller is None:
        # GDB alone would guess further frames in user space.  GDB 13 on s390x would drop this frame with an error.
        return outermost_info(frame, registers, process.arch, sp, entry)
    if place.kind is PlaceKind.EXCEPTION:
        return None
    unwinding.history.last = (frame.level(), pc, (found.caller.pc, found.caller.sp), False)
    info = caller_info(frame, registers, found.caller, entry)
    save_others(info, frame, registers, process.arch, _others(process, pc, found.caller))
    return info


def _others(process: Process, pc: int, caller: Caller) -> dict[int, int | None]:
    """Return the caller's registers that the function saved, by its CFI; ``None``: the value cannot be read."""
    rule = process.modules.cfi_rule(pc - 1)
    evaluate = partial(
        value_of,
        arch=process.arch,
        cfa=caller.cfa,
        sp=caller.sp,
        fp=caller.fp,
        read_word=process.read_word,
        read_register=None,
    )
    return other_values((rule.others if rule is not None else None) or (), evaluate)
