"""Remembers at which addresses the rules of SFrame and of CFI agree."""

from __future__ import annotations

from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.unwind.address_cache import CACHE_LIMIT
from sframe_unwind.unwind_rule import UnwindRule


class Agreements:
    """The results of comparisons by address.

    :param cfi_rule: returns the rule of the CFI for an address, or ``None``.
    :param arch: the architecture of the process.
    """

    def __init__(self, cfi_rule: Callable[[int], UnwindRule | None], arch: Arch) -> None:
        self._cfi_rule = cfi_rule
        self._arch = arch
        self.known: dict[int, tuple[UnwindRule, bool]] = {}
        """Maps an address to the rule of SFrame that was compared, and whether the CFI agrees with it."""

    def agrees(self, pc: int, rule: UnwindRule) -> bool:
        """Return whether the CFI for an address gives the same CFA, return address and frame pointer as a rule."""
        known = self.known.get(pc)
        if known is None or known[0] is not rule:
            cfi_rule = self._cfi_rule(pc)
            if len(self.known) >= CACHE_LIMIT:
                self.known.clear()
            known = self.known[pc] = rule, cfi_rule is not None and agrees(rule, cfi_rule, self._arch)
        return known[1]

    def forget_differences(self) -> None:
        """Forget the addresses without an agreement: CFI of another module may agree now."""
        for pc in [pc for pc, (_, same) in self.known.items() if not same]:
            del self.known[pc]
