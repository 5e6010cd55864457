"""Unwinds frames that neither SFrame nor LLDB unwinds: by the registers that the kernel saved, or by DWARF CFI.

Before LLDB's own frames, machine code counts whose start a frame shows, if the user wants that.

LLDB's own stack can end before SFrame's: at the first frame of run-time code, at a signed return address, at a signal
trampoline without CFI.  If the walk by SFrame continues and reaches code without SFrame, LLDB has no frame there.  The
last of LLDB's frames is also unwound, since LLDB may have missed its caller.  In the entry code of a Linux kernel, LLDB
guesses callers, so its frames are not used there.
"""

from __future__ import annotations

from lldb_plugin.frames.native import NativeStack
from lldb_plugin.process.process import Process
from sframe_unwind.address import lookup_address
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind import signal_frame
from sframe_unwind.unwind.cfi_fallback import CfiFallback
from sframe_unwind.unwind.code_fallback import CodeFallback, may_return_to
from sframe_unwind.unwind.modules_by_code import UNTOLD, is_untold
from sframe_unwind.unwind.walk import FallbackUnwinder, Registers, UnwindResult


def fallback(process: Process, native: NativeStack, read_word: ReadWord) -> FallbackUnwinder:
    """Return LLDB's unwinder, followed by others for the frames for which LLDB has no caller."""
    other = native.other()
    code = CodeFallback(process.modules, read_word, process.pac_mask)
    cfi = CfiFallback(process.arch, process.modules.cfi_match, read_word, process.pac_mask)

    kernel = process.kernel_at(native.innermost.pc)
    entry_code = None
    if kernel is not None:
        from sframe_unwind.kernel.unwinder import KernelUnwinder

        entry_code = KernelUnwinder(kernel, read_word)

    def unwind(registers: Registers, interrupted: bool, read_register: ReadRegister | None) -> UnwindResult | None:
        return (
            (entry_code.unwind(registers, interrupted, read_register) if entry_code is not None else None)
            or code.unwind(registers, interrupted, read_register)
            or _unless_refuted(process, registers, interrupted, other.unwind(registers, interrupted, read_register))
            or signal_frame.unwind(process.arch, process.read, read_word, registers)
            or _end_if_untold(process, registers, interrupted)
            or cfi.unwind(registers, interrupted, read_register if interrupted else None)
            or (entry_code.unwind_leaf(registers, interrupted, read_register) if entry_code is not None else None)
        )

    return FallbackUnwinder(other.name, unwind)


def _unless_refuted(
    process: Process, registers: Registers, interrupted: bool, by_lldb: UnwindResult | None
) -> UnwindResult | None:
    """Return LLDB's result; ``None``: it is a guess that leads to an address to which no function returns.

    LLDB guesses where only the code could tell where the frame is.  For the innermost frame, it may take the return
    address from its register, which keeps the last one after the return.
    """
    if by_lldb is None or by_lldb.caller is None or not _is_untold(process, registers, interrupted):
        return by_lldb
    by_register = interrupted and process.arch.ra is not None
    return by_lldb if not by_register and may_return_to(process.arch, by_lldb.caller.pc, process.read) else None


def _end_if_untold(process: Process, registers: Registers, interrupted: bool) -> UnwindResult | None:
    """Return the end of the stack where only the code could tell where the frame is."""
    return UnwindResult(None, False, None, end=UNTOLD) if _is_untold(process, registers, interrupted) else None


def _is_untold(process: Process, registers: Registers, interrupted: bool) -> bool:
    return is_untold(process.modules, lookup_address(registers.pc, interrupted))
