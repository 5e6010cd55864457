"""The modules of a process whose machine code gives rules where neither SFrame nor CFI does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sframe_unwind.address import lookup_address
from sframe_unwind.unwind.modules import Found, LookupResult, Module, Modules, NoData
from sframe_unwind.unwind.step import needs_registers

if TYPE_CHECKING:
    from sframe_unwind.unwind.code_match import AskedFrame, CodeMatch

UNTOLD = "neither SFrame nor CFI describes it, and the machine code does not tell"
"""The reason of :class:`NoData` where the machine code gives no rule."""


def is_untold(modules: Modules, address: int) -> bool:
    """Return whether only the machine code could give a rule for a lookup address, and does not."""
    result = modules.results[address]
    return isinstance(result, NoData) and result.reason == UNTOLD


class ModulesByCode(Modules):
    """Modules whose code is interpreted, function by function, as rules are asked for."""

    def _look_up(self, pc: int) -> LookupResult:
        """Return the unwind data for a lookup address, or else the rule of the machine code."""
        result = super()._look_up(pc)
        module = result.module if isinstance(result, NoData) else None
        code = None if module is None or module.load_code is None else module.load_code()
        if module is None or code is None or module.has_cfi(pc):
            return result
        match = code.match(pc)
        return NoData(UNTOLD, module) if match is None else self._result(match, module)

    def learn(self, frame: AskedFrame) -> bool:
        """Take the rule for a frame that shows where its function begins, if there is no other rule for it.

        :return: whether there is such a rule; :attr:`results` has it from now on.
        """
        address = lookup_address(frame.pc, frame.interrupted)
        module = self.find(address) if is_untold(self, address) else None
        code = None if module is None or module.load_code is None else module.load_code()
        match = None if code is None else code.learn(frame)
        if module is None or match is None:
            return False
        self.results[address] = self._result(match, module)
        return True

    def _result(self, match: CodeMatch, module: Module) -> Found:
        return Found(match.rule, False, match, module, needs_registers(match.rule, self.arch))
