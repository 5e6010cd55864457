"""Decides from the rules alone whether LLDB's own unwinder gives the same stack as SFrame.

Where SFrame and CFI have the same rule (:mod:`lldb_plugin.process.shared_rules`), both unwinders give the same caller.
Where only SFrame describes an address, LLDB unwinds by the instructions of the function: then LLDB's own frame is read
once, and its caller compared with SFrame's.  For all other frames, the decision costs one step for each frame, or one
for each function of a recursion.
"""

from __future__ import annotations

from typing import Protocol

from lldb_plugin.process.shared_rules import SharedRule, SharedRules
from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadAhead, ReadMemory, ReadRegister, WordReader
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.other_stacks import OtherStacks
from sframe_unwind.unwind.recursion import RECENT, WalkedFrame, skip_repetition
from sframe_unwind.unwind.signal_frame import is_trampoline
from sframe_unwind.unwind.step import Caller, check_outward, step
from sframe_unwind.unwind.walk import MAX_FRAMES, Registers

_FAR = 500
"""Number of frames beyond which LLDB's own are not read to compare them."""


class NativeCallers(Protocol):
    """LLDB's own frames of a thread, read as far as they are asked for."""

    def is_caller(self, level: int, frame: Registers, caller: Caller | None) -> bool:
        """Return whether LLDB has a frame at a level, and the same caller of it; ``None``: it has none."""

    def knows_function(self, address: int) -> bool:
        """Return whether LLDB knows where the function at an address begins."""


class Agreement(NamedTuple):
    """What is needed to compare the unwinders of a thread.

    :param read_register: reads the innermost frame's return address register.
    :param pac_mask: the authentication bits of signed return addresses; ``None``: LLDB does not know them, and takes
        a signed address for the address.
    """

    shared: SharedRules
    arch: Arch
    read: ReadMemory
    read_register: ReadRegister
    pac_mask: int | None
    callers: NativeCallers

    def holds(self, innermost: Registers) -> bool:
        """Return whether both unwinders give the same callers from the innermost frame to the end of the stack."""
        try:
            return self._holds(innermost)
        except SFrameError:
            return False

    def _holds(self, innermost: Registers) -> bool:
        pc, sp, fp = innermost
        shared, arch, pac_mask = self.shared, self.arch, self.pac_mask
        read_word = WordReader(ReadAhead(self.read), arch.byteorder)
        other_stacks = OtherStacks(arch, self.read)
        interrupted, level = True, 0
        live: ReadRegister | None = self.read_register
        recent: list[WalkedFrame] = []
        while level < MAX_FRAMES:
            if pc == 0 and level:
                return True
            address = lookup_address(pc, interrupted)
            common = shared[address] or self._learned(Registers(pc, sp, fp), address, level, interrupted)
            if common is None and level and self._is_left_to_lldb(Registers(pc, sp, fp), address, level, interrupted):
                return True
            if common is None or (common.rule.ra_signed and pac_mask is None):
                return False
            rule, signal, is_sframe = common
            if rule.cfa is None:
                return True
            # On AMD64, LLDB unwinds each frame but the innermost by FP if the function begins with `push %rbp; mov
            # %rsp,%rbp` (UnwindAssembly_x86::GetFastUnwindPlan): wrongly, if a signal came before these instructions
            # or after `pop`.
            if level and interrupted and is_sframe and arch.ra is None and rule.cfa.base != arch.fp:
                return False
            caller = step(
                rule=rule, arch=arch, sp=sp, fp=fp, read_word=read_word, read_register=live, pac_mask=pac_mask
            )
            if caller.sp <= sp and not signal and not other_stacks.accepts(sp, caller):
                check_outward(sp, caller.cfa, caller.sp, interrupted and caller.pc != pc)
            recent.append(WalkedFrame(Registers(pc, sp, fp), caller, rule))
            _, pc, sp, fp = caller
            level, interrupted, live = level + 1, signal, None
            if interrupted:
                recent.clear()
            elif len(recent) == RECENT:
                skipped, (pc, sp, fp) = skip_repetition(recent, arch, self.read)
                level += skipped
                recent.clear()
        return False

    def _is_left_to_lldb(self, frame: Registers, address: int, level: int, interrupted: bool) -> bool:
        """Return whether a frame in code without unwind data, and those outside it, are LLDB's.

        ``_start`` is such code, in the dynamic linker and in a program without CFI.  Only LLDB's own frames tell
        whether the stack ends there; to read them, LLDB unwinds all frames inside, so far out they are not read.
        """
        if not self.shared.is_undescribed(address):
            return False
        if level >= _FAR:
            return self.callers.knows_function(address)
        if interrupted or is_trampoline(self.arch, self.read, frame.pc):
            return False
        return self.callers.is_caller(level, frame, None)

    def _learned(self, frame: Registers, address: int, level: int, interrupted: bool) -> SharedRule | None:
        """Return SFrame's rule for a frame that no CFI describes; ``None``: LLDB has another caller, or may have.

        To read a frame, LLDB unwinds all frames inside it, which takes longer than all the rest in a deep stack.  So
        LLDB's callers are not read far out.  They are assumed to be right there if LLDB knows where the function
        begins, because it then unwinds by the instructions of the function.
        """
        if level and interrupted:
            return None
        alone = self.shared.by_sframe_alone(address)
        if alone is None or alone.signal or (alone.rule.ra_signed and self.pac_mask is None):
            return None
        if level < _FAR or not self.callers.knows_function(address):
            caller = None
            if alone.rule.cfa is not None:
                live = self.read_register if interrupted else None
                read_word = WordReader(self.read, self.arch.byteorder)
                caller = step(
                    rule=alone.rule,
                    arch=self.arch,
                    sp=frame.sp,
                    fp=frame.fp,
                    read_word=read_word,
                    read_register=live,
                    pac_mask=self.pac_mask,
                )
            if not self.callers.is_caller(level, frame, caller):
                return None
        if level:  # LLDB unwinds the innermost frame by other rules
            self.shared[address] = alone
        return alone
