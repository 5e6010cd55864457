"""Decides from the rules alone whether LLDB's own unwinder gives the same stack as SFrame.

LLDB unwinds by a module's CFI.  If SFrame's row and the CFI give the same rule at an address, both unwinders give
the same caller; this is found out once for each address.  A stack then costs one step for each of its frames, and
LLDB is asked only for the innermost one.
"""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind.step import check_outward, step
from sframe_unwind.unwind.walk import MAX_FRAMES, Registers
from sframe_unwind.unwind_rule import CFA, UnwindRule

_CACHE_LIMIT = 200_000
"""Maximum number of addresses to remember; single-stepping for hours must not fill the memory."""


class SharedRule(NamedTuple):
    """The rule by which both unwinders unwind from an address."""

    rule: UnwindRule
    signal: bool
    """The frame is a signal frame: its caller was interrupted."""
    is_sframe: bool
    """SFrame also has the rule, and is to be used."""


class SharedRules(dict[int, "SharedRule | None"]):
    """Maps a lookup address to the rule that both unwinders follow; ``None``: it is not certain that there is one.

    It is certain if SFrame's rule and the CFI's are equal, and if only CFI covers the address.  It is not certain if a
    rule needs registers other than SP and FP: LLDB does not follow each of those.

    :param modules: the loaded modules of the process; these rules must be dropped together with the modules' lookups.
    :param prefers_cfi: SFrame is used only where there is no CFI (mode ``fallback``).
    """

    def __init__(self, modules: Modules, prefers_cfi: bool) -> None:
        super().__init__()
        self._modules = modules
        self._prefers_cfi = prefers_cfi

    def forget_unknown(self) -> None:
        """Forget the addresses without a rule: a module may have come there."""
        for address in [address for address, shared in self.items() if shared is None]:
            del self[address]

    def __missing__(self, address: int) -> SharedRule | None:
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        try:
            shared = self._compute(address)
        except SFrameError:
            shared = None
        self[address] = shared
        return shared

    def _compute(self, address: int) -> SharedRule | None:
        cfi = self._modules.cfi_match(address)
        if cfi is None or not self._is_plain(cfi.rule):
            return None
        found = None if self._prefers_cfi else self._modules.results[address]
        if isinstance(found, Found) and not agrees(found.rule, cfi.rule, self._modules.arch):
            return None
        return SharedRule(cfi.rule, cfi.signal, isinstance(found, Found))

    def _is_plain(self, rule: UnwindRule) -> bool:
        bases = {part.base for part in rule[:3] if part is not None}
        return bases <= {CFA, self._modules.arch.sp, self._modules.arch.fp}


def lldb_agrees(
    shared: SharedRules,
    arch: Arch,
    registers: Registers,
    read_word: ReadWord,
    read_register: ReadRegister,
    pac_mask: int | None,
) -> bool:
    """Return whether both unwinders follow the same rules from the innermost frame to the end of the stack.

    :param registers: registers of the innermost frame.
    :param read_register: reads the innermost frame's return address register.
    :param pac_mask: the authentication bits of signed return addresses; ``None``: LLDB does not know them, and takes
        a signed address for the address.
    """
    pc, sp, fp = registers
    interrupted = True
    live: ReadRegister | None = read_register
    try:
        for level in range(MAX_FRAMES):
            if pc == 0 and level:
                return True
            common = shared[pc if interrupted else pc - 1]
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
            caller = step(rule, arch, sp, fp, read_word, live, pac_mask)
            if caller.sp <= sp and not signal:
                check_outward(sp, caller.cfa, caller.sp, interrupted and caller.pc != pc)
            _, pc, sp, fp = caller
            interrupted, live = signal, None
    except SFrameError:
        pass
    return False
