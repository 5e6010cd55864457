"""Changes the CFA of CFI that has a rule for the stack pointer.

Without such a rule, the caller's stack pointer follows from the CFA.  With one, the CFA can be any address to which the
offsets of saved registers are relative; in `StgRun`, which is in the stack of every Haskell program, it is the area of
the saved registers.  SFrame has no rule for the stack pointer, so its CFA must be the address from which the stack
pointer follows.
"""

from __future__ import annotations

from sframe_unwind.arch import Arch
from sframe_unwind.errors import UnsupportedExpressionError
from sframe_unwind.unwind_rule import CFA, COMPUTED, UNDEFINED, RegisterRule, UnwindRule


def with_stack_pointer(rule: UnwindRule, sp: RegisterRule, arch: Arch) -> UnwindRule:
    """Return the same rule, with the CFA from which the caller's stack pointer follows.

    On s390x, functions save the stack pointer like other registers, but it also follows from the CFA.  There,
    the CFA of Go's CFI is the caller's stack pointer itself, which a rule for the stack pointer shows.

    :param rule: the rule with the CFA of the CFI.
    :param sp: the rule for the stack pointer.
    :raises UnsupportedExpressionError: no :class:`UnwindRule` can express that CFA.
    """
    before = rule.cfa
    assert before is not None
    if arch.sp_from_cfa:
        if sp.base != CFA or sp.in_memory:
            return rule
        sp = sp._replace(offset=sp.offset - arch.sp_from_cfa)
    if sp == UNDEFINED:
        return rule
    if sp == COMPUTED:
        raise UnsupportedExpressionError("an expression for the stack pointer")
    cfa = _without_cfa(sp, before)
    if cfa == before:
        return rule

    def rebased(register: RegisterRule | None) -> RegisterRule | None:
        if register is None or register.base != CFA:
            return register
        place = _without_cfa(register, before)
        if cfa.in_memory or place.base != cfa.base:
            return place
        return RegisterRule(CFA, place.offset - cfa.offset, place.in_memory)

    others = tuple((number, rebased(other) or other) for number, other in rule.others or ())
    return rule._replace(cfa=cfa, ra=rebased(rule.ra), fp=rebased(rule.fp), others=others)


def _without_cfa(rule: RegisterRule, cfa: RegisterRule) -> RegisterRule:
    """Return a rule that is relative to the CFA as one that is relative to the CFA's register."""
    if rule.base != CFA:
        return rule
    if not cfa.in_memory:
        return RegisterRule(cfa.base, cfa.offset + rule.offset, rule.in_memory)
    if rule == RegisterRule(CFA, 0, False):
        return cfa
    raise UnsupportedExpressionError("a sum with a word from memory")
