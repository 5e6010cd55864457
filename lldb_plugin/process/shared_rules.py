"""The rules by which SFrame and LLDB's own unwinder both unwind, by address.

LLDB unwinds by a module's CFI.  If SFrame's row and the CFI give the same rule at an address, both unwinders give
the same caller; this is found out once for each address.
"""

from __future__ import annotations

from typing import Callable

from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.errors import SFrameError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.modules import Found, Modules, NoData
from sframe_unwind.unwind.modules_by_code import is_untold
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
    :param prefers_cfi: returns whether the mode uses the CFI for a lookup address, which has some, and not SFrame.
    """

    def __init__(self, modules: Modules, prefers_cfi: Callable[[int], bool]) -> None:
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
        found = None if self._prefers_cfi(address) else self._modules.results[address]
        if isinstance(found, Found) and not agrees(found.rule, cfi.rule, self._modules.arch):
            return None
        return SharedRule(cfi.rule, cfi.signal, isinstance(found, Found))

    def by_sframe_alone(self, address: int) -> SharedRule | None:
        """Return the rule for an address that only SFrame describes; ``None``: there is none, or it is not plain."""
        found = self._modules.results[address]
        if not isinstance(found, Found) or self._modules.has_cfi(address) or not self._is_plain(found.rule):
            return None
        return SharedRule(found.rule, found.signal, True)

    def is_undescribed(self, address: int) -> bool:
        """Return whether neither SFrame nor CFI describes an address, nor is its code to be interpreted."""
        has_sframe = not isinstance(self._modules.results[address], NoData)
        return not (has_sframe or self._modules.has_cfi(address) or is_untold(self._modules, address))

    def _is_plain(self, rule: UnwindRule) -> bool:
        bases = {part.base for part in rule[:3] if part is not None}
        return bases <= {CFA, self._modules.arch.sp, self._modules.arch.fp}
