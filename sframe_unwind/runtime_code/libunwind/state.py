"""The frame state that a procedure's directives build up: what becomes of each register, and the rule that follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule, saved_at_cfa


class State(NamedTuple):
    """What is known before one instruction.  Offsets are in bytes from the CFA."""

    sp: int | None
    """Offset of SP; ``None``: not known, only a copy's is."""
    base: int
    """The register that the CFA is computed from: SP, or the last one that SP was saved to."""
    copies: Mapping[int, int]
    """Offsets of the registers that SP was saved to."""
    saved: Mapping[int, RegisterRule]
    """Where the caller's values of registers are; a register that is not there is unchanged."""
    whole: bool = True
    """``False``: of the registers only return address and frame pointer are known, as where the code is an alias."""

    @property
    def frame(self) -> tuple[int | None, int]:
        """What a prologue changes and ``POP_FRAMES`` goes back to."""
        return self.sp, self.base


class Machine:
    """Carries out single directives on states."""

    def __init__(self, arch: Arch) -> None:
        self._arch = arch
        self._ra = arch.pc if arch.ra is None else arch.ra

    def entry(self) -> State:
        """Return the state before a procedure's first instruction."""
        # A call either pushes the return address or leaves it in its register.
        pushed = self._arch.ra is None
        sp = self._arch.sp_from_cfa - (WORD_SIZE if pushed else 0)
        return State(sp, self._arch.sp, {}, {self._ra: saved_at_cfa(-WORD_SIZE)} if pushed else {})

    def number(self, register: int) -> int:
        """Return the register that a directive means: pc stands for the return address."""
        return self._ra if register == self._arch.pc else register

    def add(self, state: State, register: int, value: int) -> State:
        """``ADD``: a register that holds SP, or a copy of it, moves."""
        if register == self._arch.sp:
            return self._moved(state, None if state.sp is None else state.sp + value)
        if register not in state.copies:
            raise FormatError(f"ADD to {self._arch.register_name(register)}, which holds no copy of SP")
        return state._replace(copies={**state.copies, register: state.copies[register] + value})

    def save(self, state: State, register: int, target: int) -> State:
        """``SAVE_REG``: the value of a register is in another one as well."""
        sp = self._arch.sp
        offset = state.sp if register == sp else state.copies.get(register)
        if register == sp and offset is None:
            raise FormatError("SAVE_REG of SP where its distance from the CFA is not known")
        if target == sp:
            if offset is None:
                raise FormatError(
                    f"SAVE_REG to SP from {self._arch.register_name(register)}, which holds no copy of it"
                )
            return self._moved(state, offset)
        copies = {number: at for number, at in state.copies.items() if number != target}
        if offset is not None:
            return state._replace(
                copies={**copies, target: offset}, base=target if register == sp else state.base
            )
        held = next((of for of, place in state.saved.items() if place == RegisterRule(register, 0, False)), register)
        saved = {**state.saved, held: RegisterRule(target, 0, False)}
        if held == target:  # back where it belongs
            del saved[held]
        return state._replace(copies=copies, saved=saved)

    def spill(self, state: State, register: int, offset: int, on_sp: bool) -> State:
        """``SPILL_SP_REL`` and ``SPILL_FP_REL``: a register is in memory."""
        if register == self._arch.sp:
            return state  # the caller's SP follows from the CFA
        if on_sp:
            if state.sp is None:
                raise FormatError("SPILL_SP_REL where the distance of SP from the CFA is not known")
            place = saved_at_cfa(state.sp + offset)
        else:
            pointer = self._arch.fp if state.base == self._arch.sp else state.base
            known = state.copies.get(pointer)
            place = RegisterRule(pointer, offset, True) if known is None else saved_at_cfa(known + offset)
        return state._replace(saved={**state.saved, register: place})

    def pop(self, state: State, outer: State) -> State:
        """``POP_FRAMES``: SP is what it was in an earlier state; what is saved in registers is so still."""
        kept = {number: place for number, place in state.saved.items() if not place.in_memory}
        return outer._replace(saved={**kept, **outer.saved})

    def _moved(self, state: State, sp: int | None) -> State:
        """Return the state with another SP; what lies in the part of the stack that it leaves has been restored."""
        if sp is None or state.sp is None or sp <= state.sp:
            return state._replace(sp=sp)
        freed = {
            number
            for number, place in state.saved.items()
            if place.base == CFA and place.in_memory and state.sp <= place.offset < sp
        }
        copies = {number: at for number, at in state.copies.items() if number not in freed}
        return state._replace(
            sp=sp,
            base=self._arch.sp if state.base in freed else state.base,
            copies=copies,
            saved={number: place for number, place in state.saved.items() if number not in freed},
        )

    def rule(self, state: State) -> UnwindRule:
        """Return the rule for a state."""
        base = state.base
        offset = state.sp if base == self._arch.sp else state.copies[base]
        if offset is None:
            raise FormatError("SP is all that tells the CFA, and its distance is not known")
        special = (self._ra, self._arch.fp)
        others = tuple(sorted((number, place) for number, place in state.saved.items() if number not in special))
        ra, fp = map(state.saved.get, special)
        return UnwindRule(RegisterRule(base, -offset, False), ra, fp, others=others if state.whole else None)

    def state(self, rule: UnwindRule) -> State:
        """Return the state that a rule of some other unwind info stands for."""
        if rule.cfa is None or rule.cfa.in_memory or rule.ra_signed:
            raise FormatError("ALIAS of code whose rule says more than directives can")
        saved = dict(rule.others or ())
        for number, place in ((self._ra, rule.ra), (self._arch.fp, rule.fp)):
            if place is not None:
                saved[number] = place
        if rule.cfa.base == self._arch.sp:
            return State(-rule.cfa.offset, rule.cfa.base, {}, saved, rule.others is not None)
        copies = {rule.cfa.base: -rule.cfa.offset}
        return State(None, rule.cfa.base, copies, saved, rule.others is not None)
