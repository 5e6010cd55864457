"""The frame state that the directives of a procedure change, and its conversion to a rule."""

from __future__ import annotations

from collections.abc import Mapping

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule, saved_at_cfa


class State(NamedTuple):
    """The frame state before one instruction.  Offsets are in bytes from the CFA."""

    sp: int | None
    """Offset of SP; ``None``: only the offset of a copy is known."""
    base: int
    """The register that the CFA is computed from: SP, or the last register that SP was saved to."""
    copies: Mapping[int, int]
    """Offsets of the registers that SP was saved to."""
    saved: Mapping[int, RegisterRule]
    """Rules of the caller's registers.  Other registers are unchanged."""
    whole: bool = True
    """``False``: only return address and frame pointer are known, as after an alias of code with SFrame data."""

    @property
    def frame(self) -> tuple[int | None, int]:
        """The values that a prologue changes and ``POP_FRAMES`` restores."""
        return self.sp, self.base


class DirectiveMachine:
    """Executes single directives on states."""

    def __init__(self, arch: Arch) -> None:
        self._arch = arch
        self._ra = arch.return_column

    def entry(self) -> State:
        """Return the state before the first instruction of a procedure."""
        # A call either pushes the return address or leaves it in its register.
        pushed = self._arch.ra is None
        sp = self._arch.sp_from_cfa - (WORD_SIZE if pushed else 0)
        return State(sp, self._arch.sp, {}, {self._ra: saved_at_cfa(-WORD_SIZE)} if pushed else {})

    def number(self, register: int) -> int:
        """Return the register that a directive refers to: pc stands for the return address."""
        return self._ra if register == self._arch.pc else register

    def add(self, state: State, register: int, value: int) -> State:
        """Execute ``ADD``: the procedure adds to SP, or to a register that holds a copy of SP."""
        if register == self._arch.sp:
            return self._moved(state, None if state.sp is None else state.sp + value)
        if register not in state.copies:
            raise FormatError(f"ADD to {self._arch.register_name(register)}, which holds no copy of SP")
        return state._replace(copies={**state.copies, register: state.copies[register] + value})

    def save(self, state: State, register: int, target: int) -> State:
        """Execute ``SAVE_REG``: the procedure copies a register to another register."""
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
            return state._replace(copies={**copies, target: offset}, base=target if register == sp else state.base)
        held = next((of for of, rule in state.saved.items() if rule == RegisterRule(register, 0, False)), register)
        saved = {**state.saved, held: RegisterRule(target, 0, False)}
        if held == target:  # the value is restored
            del saved[held]
        return state._replace(copies=copies, saved=saved)

    def spill(self, state: State, register: int, offset: int, on_sp: bool) -> State:
        """Execute ``SPILL_SP_REL`` or ``SPILL_FP_REL``: the procedure saves a register in memory."""
        if register == self._arch.sp:
            return state  # the caller's SP follows from the CFA
        if on_sp:
            if state.sp is None:
                raise FormatError("SPILL_SP_REL where the distance of SP from the CFA is not known")
            rule = saved_at_cfa(state.sp + offset)
        else:
            pointer = self._arch.fp if state.base == self._arch.sp else state.base
            known = state.copies.get(pointer)
            rule = RegisterRule(pointer, offset, True) if known is None else saved_at_cfa(known + offset)
        return state._replace(saved={**state.saved, register: rule})

    def pop(self, state: State, outer: State) -> State:
        """Execute ``POP_FRAMES``: restore an earlier state, but keep the values that are saved in registers."""
        kept = {number: rule for number, rule in state.saved.items() if not rule.in_memory}
        return outer._replace(saved={**kept, **outer.saved})

    def _moved(self, state: State, sp: int | None) -> State:
        """Return the state with another SP; registers that were saved in the freed part of the stack are restored."""
        if sp is None or state.sp is None or sp <= state.sp:
            return state._replace(sp=sp)
        freed = {
            number
            for number, rule in state.saved.items()
            if rule.base == CFA and rule.in_memory and state.sp <= rule.offset < sp
        }
        copies = {number: at for number, at in state.copies.items() if number not in freed}
        return state._replace(
            sp=sp,
            base=self._arch.sp if state.base in freed else state.base,
            copies=copies,
            saved={number: rule for number, rule in state.saved.items() if number not in freed},
        )

    def rule(self, state: State) -> UnwindRule:
        """Return the rule for a state."""
        base = state.base
        offset = state.sp if base == self._arch.sp else state.copies[base]
        if offset is None:
            raise FormatError("the CFA is computed from SP, but the distance of SP from the CFA is not known")
        special = (self._ra, self._arch.fp)
        others = tuple(sorted((number, rule) for number, rule in state.saved.items() if number not in special))
        ra, fp = map(state.saved.get, special)
        return UnwindRule(RegisterRule(base, -offset, False), ra, fp, others=others if state.whole else None)

    def state(self, rule: UnwindRule) -> State:
        """Return the state for a rule that comes from other unwind info.

        :raises FormatError: directives cannot express the rule.
        """
        if rule.cfa is None or rule.cfa.in_memory or rule.ra_signed:
            raise FormatError("ALIAS of code with a rule that directives cannot express")
        saved = dict(rule.others or ())
        for number, register_rule in ((self._ra, rule.ra), (self._arch.fp, rule.fp)):
            if register_rule is not None:
                saved[number] = register_rule
        if rule.cfa.base == self._arch.sp:
            return State(-rule.cfa.offset, rule.cfa.base, {}, saved, rule.others is not None)
        copies = {rule.cfa.base: -rule.cfa.offset}
        return State(None, rule.cfa.base, copies, saved, rule.others is not None)
