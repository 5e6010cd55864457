"""Explains the lookup of one address in words, for ``sframe explain``: function, row, rule, and resulting values."""

from __future__ import annotations

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import SFrameError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.report.notation import cells_of, describe_register_rule, describe_rule
from sframe_unwind.sframe.constants import FdeType, PauthKey, PcType
from sframe_unwind.sframe.table import Match
from sframe_unwind.unwind.code_match import CodeMatch
from sframe_unwind.unwind.modules import Found, Module, Modules, NoData
from sframe_unwind.unwind.run_time_match import RunTimeMatch
from sframe_unwind.unwind.step import step
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule


class FrameContext(NamedTuple):
    """The registers and memory of a frame, in which a rule is executed."""

    sp: int
    fp: int
    read_word: ReadWord
    read_register: ReadRegister | None
    pac_mask: int | None = None


def explain(modules: Modules, pc: int, name: str, context: FrameContext | None) -> list[str]:
    """Return the explanation of an address as lines of text.

    :param pc: lookup address; see :func:`sframe_unwind.address.lookup_address`.
    :param name: name of the function at the address; may be empty.
    :param context: the frame with this lookup address; ``None``: the address does not belong to a frame.
    """
    lines = [f"{pc:#x} {name}".rstrip()]
    result = modules.results[pc]
    if isinstance(result, NoData):
        return [*lines, f"no data: {result.reason}" + (f" ({result.module.name})" if result.module else "")]
    if not isinstance(result, Found):
        return [*lines, f"not usable: {result.error} ({result.module.name})"]
    match, arch = result.match, modules.arch
    if isinstance(match, (RunTimeMatch, CodeMatch)):
        lines += _procedure(match) if isinstance(match, RunTimeMatch) else _by_code(match, result.module)
        sentences = [*describe_rule(result.rule, arch), *_others(result.rule, arch)]
        lines += [f"{head:<7}{sentence}" for head, sentence in zip(("rule:", *[""] * len(sentences)), sentences)]
    else:
        lines += _function(match, result.module)
        sentences = describe_rule(result.rule, arch, match.function.fde.pauth_key)
        if result.is_refuted:
            row = f"{cells_of(match)}; the code refutes the row, it is not used"
            lines += [f"rule:  {row}", *_indented(describe_rule(match.rule, arch))]
            sentences = describe_rule(result.rule, arch)
            lines += [f"stub:  the code of the PLT stub gives {sentences[0]}", *_indented(sentences[1:])]
        else:
            lines += [f"rule:  {cells_of(match)}", *_indented(sentences)]
    return lines + (values(result.rule, arch, context) if context else [])


def _indented(sentences: list[str]) -> list[str]:
    return [f"       {sentence}" for sentence in sentences]


def _procedure(match: RunTimeMatch) -> list[str]:
    procedure = match.function
    return [
        f"code:  {procedure.name or 'without a name'}, {procedure.start:#x} to {procedure.end:#x}",
        f"       {procedure.described}",
        f"row:   from +{match.row_start:#x}",
    ]


def _by_code(match: CodeMatch, module: Module) -> list[str]:
    function = match.function
    return [
        f"code:  {function.start:#x} to {function.end:#x} in {module.name}, which no SFrame and no CFI describes",
        f"       start: {function.found_by}",
        f"       {match.basis}",
    ]


def _others(rule: UnwindRule, arch: Arch) -> list[str]:
    """Return sentences about the registers that SFrame does not track."""
    if rule.others is None:
        return []
    sentences = [
        f"{arch.register_name(number)} {describe_register_rule(register_rule, arch)}"
        for number, register_rule in rule.others
    ]
    return [*sentences, "other callee-saved registers unchanged"]


def _function(match: Match, module: Module) -> list[str]:
    function, fde = match.function, match.function.fde
    kinds = [
        f"pc type {fde.pc_type.name.lower()}" + (f" every {fde.repetition_size} bytes" if fde.repetition_size else ""),
        f"{'flexible' if fde.fde_type is FdeType.FLEX else 'default'} rows",
    ]
    if fde.signal:
        kinds.append("signal trampoline")
    if match.function.table.arch.pac_mask and fde.pauth_key is PauthKey.B:
        kinds.append("key B")
    origin = "generated from the CFI of" if module.is_generated else "in"
    row = f"+{match.row_start:#x}" + (" of the block" if fde.pc_type is PcType.MASK else "")
    return [
        f"FDE:   {function.start:#x} to {function.end:#x}, size {fde.size}, rows {fde.num_rows}; {', '.join(kinds)}",
        f"       number {function.number} of the version {function.table.header.version} table {origin} {module.name}",
        f"row:   from {row}",
    ]


def values(rule: UnwindRule, arch: Arch, context: FrameContext) -> list[str]:
    """Return the values that a rule gives in a frame, as lines of text."""
    if rule.cfa is None:
        return []
    sp, fp = context.sp, context.fp
    try:
        caller = step(
            rule=rule,
            arch=arch,
            sp=sp,
            fp=fp,
            read_word=context.read_word,
            read_register=context.read_register,
            pac_mask=context.pac_mask,
        )
    except SFrameError as error:
        return [f"here:  {error}"]
    lines = [f"here:  {arch.register_name(arch.sp)} = {sp:#x}, {arch.register_name(arch.fp)} = {fp:#x}"]
    remark = f", which is not a multiple of {arch.stack_alignment}" if caller.cfa % arch.stack_alignment else ""
    lines.append(f"       CFA = {caller.cfa:#x}{remark}")
    lines.append(f"       return address = {caller.pc:#x}{_read_at(rule.ra, caller.cfa)}")
    lines.append(f"       caller's {arch.register_name(arch.sp)} = {caller.sp:#x}")
    lines.append(f"       caller's {arch.register_name(arch.fp)} = {caller.fp:#x}{_read_at(rule.fp, caller.cfa)}")
    return lines


def _read_at(rule: RegisterRule | None, cfa: int) -> str:
    if rule is None or not rule.in_memory or rule.base != CFA:
        return ""
    return f", read at {cfa + rule.offset & ADDRESS_MASK:#x}"
