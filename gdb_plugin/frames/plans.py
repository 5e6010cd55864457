"""Decides what to do with the frames of a pc: leave them to GDB, or claim them with SFrame's rule."""

from __future__ import annotations

from typing import Callable

from gdb_plugin.frames.native_cfi import NativeCfi
from gdb_plugin.process.functions import entry_of, is_entry
from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.settings import Settings
from sframe_unwind.kernel.entry_code import EntryPlace
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.code_match import CodeMatch
from sframe_unwind.unwind.modules import Found, Modules
from sframe_unwind.unwind.modules_by_code import is_untold
from sframe_unwind.unwind.precedence import JudgeRule, Precedence, Reason, Source
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule


class Claim(NamedTuple):
    """A claimed frame, with SFrame's data for it."""

    found: Found
    entry: int
    """Start of the function.  GDB identifies frames by it."""
    others: tuple[tuple[int, RegisterRule], ...] | None
    """Places of the caller's other registers; see :attr:`sframe_unwind.unwind_rule.UnwindRule.others`."""
    has_cfi: bool
    """Whether GDB's own unwinder can also unwind the frame."""
    spares_innermost: bool = False
    """Whether GDB's own unwinder gives the same caller, but fails in outer frames: it gets the innermost frame only."""
    at_entry: bool = False
    """Whether nothing of the function has run if pc is the next instruction, so that all registers are the caller's."""


class Plan(NamedTuple):
    """The treatment of the frames of one pc."""

    interrupted: Claim | None
    """The claim for a frame in which pc is the next instruction; ``None``: leave the frame to GDB."""
    calling: Claim | None
    """The claim for a frame in which pc is a return address; ``None``: leave the frame to GDB."""
    asks: bool
    """Whether pc is the next instruction or a return address makes a difference."""
    leaf: UnwindRule | None
    """The rule of a frame that is left to GDB, if the return address is still in its register."""
    outermost: int | None = None
    """Start of the function of an outermost frame that GDB's own unwinder does not recognise as one."""
    place: EntryPlace | None = None
    """The exception or the switch of stacks in a kernel that a return address belongs to; only memory tells where the
    stack continues."""
    entered: EntryPlace | None = None
    """The exception of a kernel whose entry code contains the next instruction."""
    untold: bool = False
    """Where a frame is not claimed, only the machine code could tell where it is, and does not: GDB would guess."""


LEFT = Plan(None, None, False, None)
"""Leave all frames to GDB."""


FindRegisters = Callable[[Found, int], "tuple[tuple[int, RegisterRule], ...] | None"]
"""``(row, lookup address)``: returns the places of the caller's other registers; ``None``: they are unknown."""


class Planner:
    """Makes plans for one list of modules.

    :param native: the CFI that GDB has.
    :param find_registers: called if there is no CFI.
    :param judge: judges rules by the machine code, in mode ``auto``.
    :param able: whether GDB's own unwinder can read a return address or frame pointer that was moved to another
        register, and the return address in its register where a signal interrupted the function.
    :param strips: whether GDB can remove the signature of signed return addresses.
    """

    def __init__(
        self,
        modules: Modules,
        native: NativeCfi,
        find_registers: FindRegisters,
        judge: JudgeRule,
        able: bool,
        strips: bool,
    ) -> None:
        self.modules = modules
        self.strips = strips
        self._native = native
        self._find_registers = find_registers
        self._able = able
        self._precedence = Precedence(modules, native.match, judge, self._can_follow)

    def precedence_by_tables(self) -> Precedence:
        """Return the precedence of mode ``auto`` without the machine code, which takes too long for a whole module."""
        return Precedence(self.modules, self._native.match, None, self._can_follow)

    def plan(self, settings: Settings, pc: int) -> Plan:
        """Return the treatment of the frames of a pc."""
        interrupted = self._claim(settings, lookup_address(pc, True))
        calling = self._claim(settings, lookup_address(pc, False))
        untold = (interrupted is None and is_untold(self.modules, pc)) or (
            calling is None and is_untold(self.modules, pc - 1)
        )
        if interrupted is None and calling is None:
            if untold:
                return LEFT._replace(untold=True)
            leaf = _leaf(self.modules, pc)
            return LEFT if leaf is None else Plan(None, None, False, leaf)
        if interrupted is not None and calling is not None:
            same = interrupted.found.rule == calling.found.rule and interrupted.entry == calling.entry
            same &= interrupted.others == calling.others and not interrupted.at_entry
            if same and not interrupted.found.needs_registers:
                return Plan(calling, calling, False, None)
        return Plan(interrupted, calling, True, None, untold=untold)

    def _claim(self, settings: Settings, address: int) -> Claim | None:
        found = self.modules.results[address]
        if not isinstance(found, Found):
            return None
        has_cfi = self._native.covers(address, not settings.takes_all)
        if has_cfi and settings.leaves_cfi:
            return None
        spares_innermost = False
        if not settings.strict:
            is_left, spares_innermost = self._leaves(settings, found, address, has_cfi)
            if is_left:
                return None
        others, at_entry = (found.rule.others, False) if settings.strict else self._others(found, address, has_cfi)
        entry = entry_of(address) or found.match.function.start
        return Claim(
            found=found,
            entry=entry,
            others=others,
            has_cfi=has_cfi,
            spares_innermost=spares_innermost,
            at_entry=at_entry,
        )

    def _leaves(self, settings: Settings, found: Found, address: int, has_cfi: bool) -> tuple[bool, bool]:
        """Return whether every frame at an address is left to GDB's own unwinder; if not, whether the innermost one is.

        GDB's own unwinder can fail only in the outer frames, where the return address is still in its register.
        """
        rule = found.rule
        if settings.decides:
            decision = self._precedence.decisions[address]
            is_left, agrees = decision.source is not Source.SFRAME, decision.reason is Reason.AGREE
        else:
            is_left = agrees = has_cfi and self._can_follow(rule) and self.modules.cfi_agrees(address, rule)
        spares_innermost = agrees and rule.ra is None and not self._able
        return is_left and not spares_innermost, spares_innermost

    def _can_follow(self, rule: UnwindRule) -> bool:
        """Return whether GDB's own unwinder can unwind by a rule of the CFI."""
        return (self._able or not _moves(rule)) and (self.strips or not rule.ra_signed)

    def _others(
        self, found: Found, address: int, has_cfi: bool
    ) -> tuple[tuple[tuple[int, RegisterRule], ...] | None, bool]:
        """Return the places of the caller's other registers, and whether all still have the caller's values."""
        if found.rule.others is not None:
            return found.rule.others, False
        cfi = self.modules.cfi_rule(address)
        others = cfi.others if cfi is not None and cfi.cfa == found.rule.cfa else None
        if others is not None or has_cfi:
            return others, False
        at_entry = _is_at_entry(found, address, self.modules.arch)
        return () if at_entry else self._find_registers(found, address), at_entry


def _is_at_entry(found: Found, address: int, arch: Arch) -> bool:
    """Return whether an address is that of a function's first instruction."""
    match = found.match
    if match.function.start != address or found.signal or not is_call_rule(found.rule, arch):
        return False
    if isinstance(match, CodeMatch):
        return True
    return isinstance(match, Match) and match.function.fde.pc_type is not PcType.MASK and is_entry(address)


def is_call_rule(rule: UnwindRule, arch: Arch) -> bool:
    """Return whether a rule is that of a frame in which a call has just arrived."""
    call = arch.call_rule
    return rule.cfa == call.cfa and rule.ra == call.ra and rule.fp is None


def _moves(rule: UnwindRule) -> bool:
    """Return whether return address or frame pointer are in another register, as in leaf functions of s390x."""
    return any(part is not None and part.base >= 0 and not part.in_memory for part in (rule.ra, rule.fp))


def _leaf(modules: Modules, pc: int) -> UnwindRule | None:
    if modules.arch.ra is None:
        return None
    found = modules.results[pc]
    rule = found.rule if isinstance(found, Found) else modules.cfi_rule(pc)
    return rule if rule is not None and rule.cfa is not None and rule.ra is None else None
