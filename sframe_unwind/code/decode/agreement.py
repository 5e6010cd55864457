"""Compares the effects of an instruction by VEX with its operands by capstone: effects that both show are known."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sframe_unwind.code.decode.folding import mixed, unknown
from sframe_unwind.code.decode.instruction import (
    CC_OPERATION,
    HIGH,
    LOAD,
    REGISTER,
    REST,
    UNKNOWN,
    Expression,
    Instruction,
    Kind,
)
from sframe_unwind.code.decode.machines import Machine
from sframe_unwind.code.decode.machines.base import Disassembled
from sframe_unwind.named_tuple import NamedTuple

_WORD = 8
_MOST_LOADED = 64
"""Bytes that an instruction is assumed to load if capstone does not know how many, and it does not store there."""
_WRITTEN = 2
"""Capstone's bit for an operand in memory that is written."""


class Exemption(NamedTuple):
    """Instructions for which capstone shows a wrong operand, or does not tell whether it is written."""

    machine: str
    what: str
    """``register`` or ``memory``: the operand that is not written."""
    mnemonics: str
    """Pattern for capstone's mnemonics."""
    reason: str
    example: str
    """One such instruction in hexadecimal digits, which the witness (``lab/code/witness``) executes."""


_NOT_TOLD = "capstone does not tell which operands an instruction of s390x writes: of these, not the first register"
EXEMPTIONS = (
    Exemption("amd64", "register", "test", "capstone takes the operand before a constant for a result", "a900411d00"),
    Exemption("amd64", "register", "cwd|cdq|cqo", "capstone takes the operand for a result, too", "99"),
    Exemption("amd64", "register", "vzeroupper", "the followed halves of vector registers are kept", "c5f877"),
    Exemption(
        "amd64", "memory", "(lock )?or", "a barrier or a stack probe writes back what memory holds", "f0830c2400"
    ),
    Exemption("amd64", "register", "stos[bdqw]", "capstone: rcx, which only a repetition writes", "48ab"),
    Exemption("aarch64", "register", "cmp|cmn|tst", "the result has no register", "3fe00371"),
    Exemption("aarch64", "register", r"st[1-4]", "capstone takes the vectors for results", "40a0004c"),
    Exemption(
        "aarch64", "memory", r"ldr?|ldu?r\w+|ldp(sw)?|ld[1-4]r?|prfm", "capstone: a load with an index", "81f45f38"
    ),
    Exemption("s390x", "register", r"v?st\w*|vsce[fg]", _NOT_TOLD, "e320f0a00024"),
    Exemption(
        "s390x",
        "register",
        r"cl?(g?fi|g?hi|g?r|g?|gfr?|y|gh|hy?|hf|ih|m[hy]?|g?f?rl|g?hrl|hhr|hlr|[fhg]?hsi|g?[ri][jbt]|fit|g?t|gfrl)"
        r"(n?(e|h|l|lh|he|le|o))?|[ck][edx](br?|r|tr)",
        f"{_NOT_TOLD} (comparisons)",
        "b9200023",
    ),
    Exemption("s390x", "register", r"tm\w+|tc[edx]b|td[cg]\w+", f"{_NOT_TOLD} (tests)", "a7210001"),
    Exemption("s390x", "register", r"b(n?(e|h|l|lh|he|le|o|p|m|z)|c)?r", f"{_NOT_TOLD} (jumps)", "07f4"),
    Exemption("s390x", "register", r"cvd[gy]?", f"{_NOT_TOLD} (a store)", "4e20f0a0"),
    Exemption(
        "s390x", "register", r"l(t?g?|te|td)r|icm[hy]?", "a register is copied to itself, or the mask is 0", "18bb"
    ),
    Exemption("s390x", "register", "sfpc", f"{_NOT_TOLD} (a control register)", "b3840020"),
)


def agrees(instruction: Instruction, found: Disassembled | None, machine: Machine) -> bool:
    """Return whether an instruction has the size, the results and the stores that capstone decodes.

    :param found: the instruction by capstone; ``None``: it does not know it.
    """
    if found is None or found.size != instruction.size:
        return False
    if instruction.kind is Kind.SYSTEM:
        return True  # the registers that a system call changes are a fact of the machine
    written = {number for number, _ in instruction.puts}
    if any(number not in written and number + HIGH not in written for number in _results(found, machine)):
        return False
    return all(_is_stored(instruction, found, number, machine) for number in range(len(found.memory)))


def with_sources(instruction: Instruction, found: Disassembled) -> Instruction:
    """Return an instruction that VEX does not know with what its results are computed from, by capstone's operands.

    What it writes to registers that are not followed is in :data:`REST`.
    """
    computed = mixed(*((REGISTER, number, 0) for number in dict.fromkeys(found.all_registers)), (REGISTER, REST, 0))
    stored = max((size for _, size, _ in instruction.stores if isinstance(size, int)), default=_MOST_LOADED)
    loads = [(LOAD, place, max(size or stored, _WORD), False) for place, size, _ in found.memory if place is not None]
    sources = (computed, *loads)

    def described(value: Expression) -> Expression:
        return unknown(*value[1:], *sources) if value[:1] == (UNKNOWN,) else value

    puts = [(number, value if number == CC_OPERATION else described(value)) for number, value in instruction.puts]
    puts.append((REST, unknown((REGISTER, REST, 0), *sources)))
    stores = tuple((place, size, described(value)) for place, size, value in instruction.stores)
    return instruction._replace(puts=tuple(puts), stores=stores)


def _results(found: Disassembled, machine: Machine) -> Iterator[int]:
    """Yield the followed registers that an instruction must write."""
    if _is_exempt(found, "register", machine):
        return
    if machine.has_access:
        yield from found.written
    elif found.registers and found.registers[0]:
        yield found.registers[0][0]


def _is_stored(instruction: Instruction, found: Disassembled, operand: int, machine: Machine) -> bool:
    """Return whether an instruction stores to all bytes of an operand in memory, or does not write the operand."""
    address, size, _ = found.memory[operand]
    if any(not isinstance(length, int) for _, length, _ in instruction.stores):
        return True  # a store of unknown size is assumed to include the operand
    stored = sum(length for _, length, _ in instruction.stores if isinstance(length, int))
    is_written = bool(found.accesses[operand] & _WRITTEN) and not _is_exempt(found, "memory", machine)
    # For compare-and-swap, capstone shows the operand as one that is only read.
    is_written |= any(place == address for place, _, _ in instruction.stores)
    return not is_written or (stored > 0 and stored >= size)


def _is_exempt(found: Disassembled, what: str, machine: Machine) -> bool:
    patterns = _PATTERNS.get((machine.arch.name.partition("_")[0], what))
    return patterns is not None and patterns.fullmatch(found.mnemonic) is not None


_PATTERNS = {
    (machine, what): re.compile(
        "|".join(one.mnemonics for one in EXEMPTIONS if (one.machine, one.what) == (machine, what))
    )
    for machine, what in {(one.machine, one.what) for one in EXEMPTIONS}
}
