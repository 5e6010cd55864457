"""Layer 3: one rule, the registers of a frame and its memory give the registers of the caller."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError, StepError
from sframe_unwind.memory import ReadRegister, ReadWord
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule


class Caller(NamedTuple):
    """What unwinding one frame yields: its CFA, and the registers of its caller."""

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
    """Carry out a rule (specification, appendix A).

    :param sp: stack pointer of the frame.
    :param fp: frame pointer register of the frame.
    :param read_register: the other registers.  Give it for the innermost frame and the one that a signal
        interrupted; in any other frame their values are gone, and a rule that wants one is an error.
    :param pac_mask: the authentication bits of a signed return address; ``None``: the ABI's usual ones.
    :raises StepError: the rule cannot hold in this frame, or its CFA is not aligned.
    :raises MemoryReadError: the stack cannot be read.
    """
    place = rule.cfa
    if place is None:
        raise StepError("the return address is undefined: this is the outermost frame")
    base, offset, in_memory = place
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
    place = rule.ra
    if place is None:
        pc = _return_register(arch, read_register)
    elif place.base == CFA and place.in_memory:
        pc = read_word(cfa + place.offset & ADDRESS_MASK)
    else:
        pc = value_of(place, arch, cfa, sp, fp, read_word, read_register)
    if rule.ra_signed:
        pc = arch.strip(pc, arch.pac_mask if pac_mask is None else pac_mask)
    place = rule.fp
    if place is not None:
        if place.base == CFA and place.in_memory:
            fp = read_word(cfa + place.offset & ADDRESS_MASK)
        else:
            fp = value_of(place, arch, cfa, sp, fp, read_word, read_register)
    return Caller(cfa, pc, cfa + arch.sp_from_cfa & ADDRESS_MASK, fp)


def needs_registers(rule: UnwindRule, arch: Arch) -> bool:
    """Return whether a rule can be carried out only where registers besides SP and FP are known."""
    if rule.cfa is None:
        return False
    places = [place for place in rule[:3] if place is not None]
    return rule.ra is None or any(place.base not in (CFA, arch.sp, arch.fp) for place in places)


def other_registers(
    rule: UnwindRule, arch: Arch, cfa: int, sp: int, fp: int, read_word: ReadWord, read_register: ReadRegister
) -> dict[int, int]:
    """Return the caller's values of the further registers that a rule locates, as far as they can be read."""
    values: dict[int, int] = {}
    for number, place in rule.others or ():
        with suppress(MemoryReadError, StepError):
            values[number] = value_of(place, arch, cfa, sp, fp, read_word, read_register)
    return values


def check_outward(sp: int, cfa: int, caller_sp: int, innermost: bool) -> None:
    """Check that the caller's frame lies further out, without which a walk need not end.

    Only a frame whose registers are all live can have the same SP as its caller: a leaf function that has
    not touched the stack (AArch64, s390x).

    :raises StepError: it does not.
    """
    if caller_sp < sp or (caller_sp == sp and not innermost):
        raise StepError(f"CFA {cfa:#x} does not lie outward of SP {sp:#x}")


def _register(arch: Arch, number: int, read_register: ReadRegister | None) -> int:
    if number < CFA:
        raise StepError("a register's value cannot be restored")
    if read_register is None:
        raise StepError(
            f"{arch.register_name(number)} is wanted, whose value is known only in the innermost frame"
            " and behind a signal frame"
        )
    return read_register(number)


def _return_register(arch: Arch, read_register: ReadRegister | None) -> int:
    if arch.ra is None:
        raise StepError(f"no place for the return address, which {arch.name} always has in memory")
    return _register(arch, arch.ra, read_register)


def value_of(
    place: RegisterRule, arch: Arch, cfa: int, sp: int, fp: int, read_word: ReadWord, read_register: ReadRegister | None
) -> int:
    """Return what a place holds, or is; the parameters are those of :func:`step`.

    :raises StepError: it is a register that is not known.
    :raises MemoryReadError: it cannot be read.
    """
    if place.base == CFA:
        value = cfa
    elif place.base == arch.sp:
        value = sp
    elif place.base == arch.fp:
        value = fp
    else:
        value = _register(arch, place.base, read_register)
    value = value + place.offset & ADDRESS_MASK
    return read_word(value) if place.in_memory else value
