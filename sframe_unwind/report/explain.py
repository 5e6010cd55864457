"""Why SFrame says what it says of one address, in words."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.report.notation import cells_of, place_words, words
from sframe_unwind.sframe.constants import FdeType, PauthKey, PcType
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.modules import Found, Modules, NoData, RunTimeMatch
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule


class FrameContext(NamedTuple):
    """A frame to show the rule at work in."""

    sp: int
    fp: int
    read_word: ReadWord
    read_register: ReadRegister | None
    pac_mask: int | None = None


def explain(modules: Modules, pc: int, name: str, here: FrameContext | None) -> list[str]:
    """Return the lines that explain an address.

    :param pc: the lookup address: for a caller, its return address minus 1.
    :param name: what the address is called.
    :param here: the frame whose pc this is, if it is one's.
    """
    lines = [f"{pc:#x} {name}".rstrip()]
    answer = modules.answers[pc]
    if isinstance(answer, NoData):
        return [*lines, f"no data: {answer.reason}" + (f" ({answer.module.name})" if answer.module else "")]
    if not isinstance(answer, Found):
        return [*lines, f"not usable: {answer.error} ({answer.module.name})"]
    match, arch = answer.match, modules.arch
    if isinstance(match, RunTimeMatch):
        lines += _procedure(match)
        said = [*words(answer.rule, arch), *_others(answer.rule, arch)]
        lines += [f"{head:<7}{sentence}" for head, sentence in zip(("rule:", *[""] * len(said)), said)]
    else:
        lines += _function(match, answer.module.name)
        said = words(answer.rule, arch, match.function.fde.pauth_key)
        lines += [f"rule:  {cells_of(match)}", *(f"       {sentence}" for sentence in said)]
    return lines + (_values(answer.rule, arch, here) if here else [])


def _procedure(match: RunTimeMatch) -> list[str]:
    procedure = match.function
    return [
        f"code:  {procedure.name or 'without a name'}, {procedure.start:#x} to {procedure.end:#x}",
        f"       {procedure.described}",
        f"row:   from +{match.row_start:#x}",
    ]


def _others(rule: UnwindRule, arch: Arch) -> list[str]:
    """Return what a rule says of further registers; SFrame says nothing of them."""
    if rule.others is None:
        return []
    said = [f"{arch.register_name(number)} {place_words(place, arch)}" for number, place in rule.others]
    return [*said, "other callee-saved registers unchanged"]


def _function(match: Match, module: str) -> list[str]:
    function, fde = match.function, match.function.fde
    kinds = [
        f"pc type {fde.pc_type.name.lower()}" + (f" every {fde.repetition_size} bytes" if fde.repetition_size else ""),
        f"{'flexible' if fde.fde_type is FdeType.FLEX else 'default'} rows",
    ]
    if fde.signal:
        kinds.append("signal trampoline")
    if match.function.table.arch.pac_mask and fde.pauth_key is PauthKey.B:
        kinds.append("key B")
    row = f"+{match.row_start:#x}" + (" of the block" if fde.pc_type is PcType.MASK else "")
    return [
        f"FDE:   {function.start:#x} to {function.end:#x}, size {fde.size}, rows {fde.num_rows}; {', '.join(kinds)}",
        f"       number {function.number} of the version {function.table.header.version} table in {module}",
        f"row:   from {row}",
    ]


def _values(rule: UnwindRule, arch: Arch, here: FrameContext) -> list[str]:
    if rule.cfa is None:
        return []
    try:
        caller = step(rule, arch, here.sp, here.fp, here.read_word, here.read_register, here.pac_mask)
    except SFrameError as error:
        return [f"here:  {error}"]
    lines = [f"here:  {arch.register_name(arch.sp)} = {here.sp:#x}, {arch.register_name(arch.fp)} = {here.fp:#x}"]
    remark = f", which is not a multiple of {arch.stack_alignment}" if caller.cfa % arch.stack_alignment else ""
    lines.append(f"       CFA = {caller.cfa:#x}{remark}")
    lines.append(f"       return address = {caller.pc:#x}{_read_at(rule.ra, caller.cfa)}")
    lines.append(f"       caller's {arch.register_name(arch.sp)} = {caller.sp:#x}")
    lines.append(f"       caller's {arch.register_name(arch.fp)} = {caller.fp:#x}{_read_at(rule.fp, caller.cfa)}")
    return lines


def _read_at(place: RegisterRule | None, cfa: int) -> str:
    if place is None or not place.in_memory or place.base != CFA:
        return ""
    return f", read at {cfa + place.offset & ADDRESS_MASK:#x}"
