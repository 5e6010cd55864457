"""One unwind step: computes the caller's registers from a rule, the registers of a frame, and memory."""

from __future__ import annotations

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import StepError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule


class Caller(NamedTuple):
    """The result of a step: the CFA of the frame, and the registers of its caller."""

    cfa: int
    pc: int
    sp: int
    fp: int


def step(
    rule: UnwindRule,
    arch: Arch,
    sp: int,
    fp: int,
    read_word: ReadWord,
    read_register: ReadRegister | None = None,
    pac_mask: int | None = None,
) -> Caller:
    """Execute a rule (V2 errata 1, appendix A).

    :param sp: stack pointer of the frame.
    :param fp: frame pointer register of the frame.
    :param read_register: reads the other registers.  They are known in an interrupted frame; pass ``None`` for any
        other frame.  A rule that needs an unknown register is an error.
    :param pac_mask: the bits of a signed return address that hold the authentication code; ``None``: the default of
        the architecture.
    :raises StepError: the rule needs a value that is not known, or the CFA is not a multiple of 8.
    :raises MemoryReadError: the stack cannot be read.
    """
    register_rule = rule.cfa
    if register_rule is None:
        raise StepError("the return address is undefined: this is the outermost frame")
    base, offset, in_memory = register_rule
    if base == arch.sp:
        cfa = sp + offset
    elif base == arch.fp:
        cfa = fp + offset
    else:
        cfa = _register(arch, base, read_register) + offset
    if in_memory:
        cfa = read_word(cfa & ADDRESS_MASK)
    cfa &= ADDRESS_MASK
    if cfa & 7:
        raise StepError(f"CFA {cfa:#x} is not a multiple of 8")
    register_rule = rule.ra
    if register_rule is None:
        pc = _return_register(arch, read_register)
    elif register_rule.base == CFA and register_rule.in_memory:
        pc = read_word(cfa + register_rule.offset & ADDRESS_MASK)
    else:
        pc = value_of(
            rule=register_rule, arch=arch, cfa=cfa, sp=sp, fp=fp, read_word=read_word, read_register=read_register
        )
    if rule.ra_signed:
        pc = arch.strip(pc, arch.pac_mask if pac_mask is None else pac_mask)
    register_rule = rule.fp
    if register_rule is not None:
        if register_rule.base == CFA and register_rule.in_memory:
            fp = read_word(cfa + register_rule.offset & ADDRESS_MASK)
        else:
            fp = value_of(
                rule=register_rule, arch=arch, cfa=cfa, sp=sp, fp=fp, read_word=read_word, read_register=read_register
            )
    fields = cfa, pc, cfa + arch.sp_from_cfa & ADDRESS_MASK, fp
    return tuple.__new__(Caller, fields)  # half the time of calling the class


def needs_registers(rule: UnwindRule, arch: Arch) -> bool:
    """Return whether a step with this rule needs registers besides SP and FP."""
    if rule.cfa is None:
        return False
    register_rules = (rule.cfa, rule.ra, rule.fp)
    return rule.ra is None or any(one is not None and one.base not in (CFA, arch.sp, arch.fp) for one in register_rules)


def check_outward(sp: int, cfa: int, caller_sp: int, innermost: bool) -> None:
    """Check that the caller's frame is further out.  Without this check, a walk of a corrupt stack may not end.

    Only the innermost frame can have the same SP as its caller: a leaf function that has not changed SP (AArch64,
    s390x).

    :param innermost: the frame is the innermost one, or a signal interrupted it.
    :raises StepError: the caller's frame is not further out.
    """
    if caller_sp < sp or (caller_sp == sp and not innermost):
        raise StepError(f"CFA {cfa:#x} does not lie outward of SP {sp:#x}")


def _register(arch: Arch, number: int, read_register: ReadRegister | None) -> int:
    if number < CFA:
        raise StepError("a register's value cannot be restored")
    if read_register is None:
        raise StepError(
            f"the rule needs {arch.register_name(number)}, which is known only in the innermost frame"
            " and in a frame that a signal interrupted"
        )
    return read_register(number)


def _return_register(arch: Arch, read_register: ReadRegister | None) -> int:
    if arch.ra is None:
        raise StepError(f"the rule does not locate the return address, which {arch.name} always has in memory")
    return _register(arch, arch.ra, read_register)


def value_of(
    rule: RegisterRule, arch: Arch, cfa: int, sp: int, fp: int, read_word: ReadWord, read_register: ReadRegister | None
) -> int:
    """Return the value that a register rule gives.  The other parameters are those of :func:`step`.

    :raises StepError: the rule needs a register that is not known.
    :raises MemoryReadError: the value cannot be read from memory.
    """
    if rule.base == CFA:
        value = cfa
    elif rule.base == arch.sp:
        value = sp
    elif rule.base == arch.fp:
        value = fp
    else:
        value = _register(arch, rule.base, read_register)
    value = value + rule.offset & ADDRESS_MASK
    return read_word(value) if rule.in_memory else value
