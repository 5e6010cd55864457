"""Decides what to do with the frames of a pc: leave them to GDB, or claim them with SFrame's rule."""

from __future__ import annotations

from typing import Callable, NamedTuple

from gdb_plugin.functions import entry_of, is_entry
from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.debugger.settings import FALLBACK, Settings
from sframe_unwind.kernel.entry_code import EntryPlace
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.modules import Found, Module, Modules
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule


class Claim(NamedTuple):
    """A claimed frame, with SFrame's data for it."""

    found: Found
    entry: int
    """Start of the function.  GDB identifies frames by it."""
    others: tuple[tuple[int, RegisterRule], ...] | None
    """Places of the caller's other registers; see :attr:`sframe_unwind.unwind_rule.UnwindRule.others`."""
    has_cfi: bool
    """GDB's own unwinder can also unwind the frame."""
    spares_innermost: bool = False
    """GDB's own unwinder gives the same, and fails only in outer frames: the innermost frame is left to it."""
    at_entry: bool = False
    """Nothing of the function has run if pc is the next instruction: all registers are the caller's."""


class Plan(NamedTuple):
    """The treatment of the frames of one pc."""

    interrupted: Claim | None
    """If pc is the next instruction; ``None``: leave the frame to GDB."""
    calling: Claim | None
    """If pc is a return address; ``None``: leave the frame to GDB."""
    asks: bool
    """Whether pc is the next instruction or a return address makes a difference."""
    leaf: UnwindRule | None
    """The rule of a frame that is left to GDB, if the return address is still in its register."""
    outermost: int | None = None
    """Start of the function of an outermost frame that GDB's own unwinder does not recognise as one."""
    place: EntryPlace | None = None
    """If pc is a return address: an exception of a kernel, or a switch of stacks.  Only memory tells where the stack
    continues."""
    entered: EntryPlace | None = None
    """If pc is the next instruction: an exception of a kernel."""


LEFT = Plan(None, None, False, None)
"""Leave all frames to GDB."""


FindRegisters = Callable[[Found, int], "tuple[tuple[int, RegisterRule], ...] | None"]
"""``(row, lookup address)``: returns the places of the caller's other registers; ``None``: they are unknown."""


def make_plan(
    modules: Modules,
    gdb_has: Callable[[Module, Settings], bool],
    find_registers: FindRegisters,
    settings: Settings,
    pc: int,
    able: bool,
    strips: bool,
) -> Plan:
    """Return the treatment of the frames of a pc.

    :param gdb_has: whether GDB has a module's file, and therefore its CFI.
    :param find_registers: called if there is no CFI.
    :param able: GDB's own unwinder can read a return address or frame pointer that was moved to another register, and
        the return address in its register where a signal interrupted the function.
    :param strips: GDB can strip signed return addresses.
    """
    interrupted = _claim(modules, gdb_has, find_registers, settings, lookup_address(pc, True), able, strips)
    calling = _claim(modules, gdb_has, find_registers, settings, lookup_address(pc, False), able, strips)
    if interrupted is None and calling is None:
        leaf = _leaf(modules, pc)
        return LEFT if leaf is None else Plan(None, None, False, leaf)
    if interrupted is not None and calling is not None:
        same = interrupted.found.rule == calling.found.rule and interrupted.entry == calling.entry
        same &= interrupted.others == calling.others and not interrupted.at_entry
        if same and not interrupted.found.needs_registers:
            return Plan(calling, calling, False, None)
    return Plan(interrupted, calling, True, None)


def _claim(
    modules: Modules,
    gdb_has: Callable[[Module, Settings], bool],
    find_registers: FindRegisters,
    settings: Settings,
    address: int,
    able: bool,
    strips: bool,
) -> Claim | None:
    found = modules.results[address]
    if not isinstance(found, Found):
        return None
    rule = found.rule
    has_cfi = modules.has_cfi(address) and gdb_has(found.module, settings)
    if has_cfi and settings.mode == FALLBACK:
        return None
    others = rule.others
    spares_innermost = at_entry = False
    if not settings.strict:
        can = (able or not _moves(rule)) and (strips or not rule.ra_signed)
        agrees = can and has_cfi and modules.cfi_agrees(address, rule)
        spares_innermost = agrees and rule.ra is None and not able
        if agrees and not spares_innermost:
            return None
        cfi = modules.cfi_rule(address)
        if others is None and cfi is not None and cfi.cfa == rule.cfa:
            others = cfi.others
        if others is None and not has_cfi:
            at_entry = _is_at_entry(found, address, modules.arch)
            others = () if at_entry else find_registers(found, address)
    entry = entry_of(address) or found.match.function.start
    return Claim(found, entry, others, has_cfi, spares_innermost, at_entry)


def _is_at_entry(found: Found, address: int, arch: Arch) -> bool:
    """Return whether an address is that of a function's first instruction."""
    match = found.match
    if not isinstance(match, Match) or match.function.start != address or found.signal:
        return False
    return is_call_rule(found.rule, arch) and match.function.fde.pc_type is not PcType.MASK and is_entry(address)


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
