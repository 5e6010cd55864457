"""CFI with a rule for the stack pointer: its CFA is not the one that SFrame and other unwinders compute.

Without such a rule, the CFA tells the stack pointer of the caller.  With one, the CFA is an address that the function
chose, from which its registers count.  `StgRun`, through which every Haskell program runs, has it at the register area.
SFrame has no rule for the stack pointer, so its CFA must be the address that tells it.
"""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.errors import UnsupportedExpressionError
from sframe_unwind.unwind_rule import CFA, COMPUTED, UNDEFINED, RegisterRule, UnwindRule


def with_stack_pointer(rule: UnwindRule, sp: RegisterRule, arch: Arch) -> UnwindRule:
    """Return the same rule with the CFA that tells the caller's stack pointer.

    On s390x a function saves the stack pointer as it saves other registers, and the CFA tells it nevertheless.

    :param rule: by the CFA as the CFI defines it.
    :param sp: the stack pointer's own rule.
    :raises UnsupportedExpressionError: no rule has that CFA.
    """
    before = rule.cfa
    assert before is not None
    if arch.sp_from_cfa or sp == UNDEFINED:
        return rule
    if sp == COMPUTED:
        raise UnsupportedExpressionError("an expression for the stack pointer")
    cfa = _without_cfa(sp, before)
    if cfa == before:
        return rule

    def counted(register: RegisterRule | None) -> RegisterRule | None:
        if register is None or register.base != CFA:
            return register
        place = _without_cfa(register, before)
        if cfa.in_memory or place.base != cfa.base:
            return place
        return RegisterRule(CFA, place.offset - cfa.offset, place.in_memory)

    others = tuple((number, counted(other) or other) for number, other in rule.others or ())
    return rule._replace(cfa=cfa, ra=counted(rule.ra), fp=counted(rule.fp), others=others)


def _without_cfa(rule: RegisterRule, cfa: RegisterRule) -> RegisterRule:
    """Return a rule that counts from the CFA as one that counts from the CFA's register."""
    if rule.base != CFA:
        return rule
    if not cfa.in_memory:
        return RegisterRule(cfa.base, cfa.offset + rule.offset, rule.in_memory)
    if rule == RegisterRule(CFA, 0, False):
        return cfa
    raise UnsupportedExpressionError("a sum of what was read from memory")
