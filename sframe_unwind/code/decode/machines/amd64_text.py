"""The notation of AMD64's instructions, as objdump writes them."""

from __future__ import annotations

import re

from sframe_unwind.address import ADDRESS_MASK

_NAMES = (
    *("mov", "lea", "add", "adc", "sub", "sbb", "and", "or", "xor", "test", "cmp", "xchg", "xadd", "cmpxchg", "movbe"),
    *("inc", "dec", "neg", "not", "mul", "imul", "div", "idiv", "bswap", "bsf", "bsr", "bt", "bts", "btr", "btc"),
    *("popcnt", "tzcnt", "lzcnt", "andn", "bextr", "blsi", "blsmsk", "blsr", "bzhi", "pdep", "pext", "mulx", "rorx"),
    *("sarx", "shlx", "shrx", "adcx", "adox", "rdrand", "rdseed"),
    *("cmovo", "cmovno", "cmovb", "cmovae", "cmove", "cmovne", "cmovbe", "cmova"),
    *("cmovs", "cmovns", "cmovp", "cmovnp", "cmovl", "cmovge", "cmovle", "cmovg"),
)


def _without_size(*names: str) -> dict[str, str]:
    """Return mnemonics by what capstone makes of them for operands of each size."""
    return {f"{name}{size}": name for name in names for size in "bwlq"}


_ALWAYS = {
    **{name: name[:-1] for name in ("pushq", "popq", "callq", "retq", "jmpq", "leaveq", "movabsq")},
    **_without_size("shld", "shrd", "in", "out"),
}
_BY_A_REGISTER = _without_size(*_NAMES)
_BY_THE_LAST_OPERAND = _without_size("shl", "shr", "sar", "rol", "ror", "rcl", "rcr")
"""A shift by ``%cl`` says nothing about the size of what is shifted."""
_is_register = re.compile(r"%(?:[re]?[a-d]x|[a-d][hl]|r\d+[dwb]?|[re]?(?:[bs]p|[sd]i)|(?:[bs]p|[sd]i)l)").fullmatch
"""Whether an operand is a general register."""
_SMALL = re.compile(r"(?<!\w)(?=\d(?:[(,]|$))")
"""Matches before a number below 10, which capstone writes without ``0x``: an immediate value, a displacement or an
address, but not a scale, which objdump too writes so: ``8(%rax,%rcx,8)`` is its ``0x8(%rax,%rcx,8)``."""
_LARGE = re.compile(r"(?<=\$)\d{19,}")
"""An immediate value of 2^63 or more, which capstone writes as a decimal number."""
_WITHOUT_BASE = re.compile(r"(?<!\w)(?=\(,)")
"""Matches before an address of an index alone, where objdump writes the displacement also if it is 0."""
_WITHOUT_SCALE = re.compile(r"(?<=\()(%\w+, ?%\w+)(?=\))")


def objdump_text(mnemonic: str, operands: str) -> str:
    """Return an instruction of capstone in objdump's notation."""
    prefix, _, name = mnemonic.rpartition(" ")
    operands = _LARGE.sub(lambda found: hex(int(found[0])), _SMALL.sub("0x", operands))
    operands = _WITHOUT_SCALE.sub(r"\1,1", _WITHOUT_BASE.sub("0x0", operands)).replace(" {", "{")
    return " ".join(filter(None, (prefix, _mnemonic(name, operands), operands.replace(", ", ","))))


def _mnemonic(name: str, operands: str) -> str:
    """Return a mnemonic without the size of the operands if a register implies it."""
    if name in _ALWAYS:
        return _ALWAYS[name]
    last = operands.rpartition(", ")[2]
    if name in _BY_THE_LAST_OPERAND:
        return _BY_THE_LAST_OPERAND[name] if _is_register(last) else name
    # movq of a vector register is another instruction than mov.
    if name in _BY_A_REGISTER and "mm" not in operands and any(map(_is_register, (operands.partition(",")[0], last))):
        return _BY_A_REGISTER[name]
    return name


_TARGET = re.compile(r"(?:^|\s)(?:j\w+|callq?|loop\w*|xbegin) 0x([0-9a-f]+)$")
_RELATIVE = re.compile(r"(-?)(?:0x)?([0-9a-f]*)\(%rip\)")
"""Capstone leaves out a displacement of 0, and writes those below 10 without ``0x``."""


def references(text: str, end: int) -> tuple[int, ...]:
    """Return the address to which an instruction refers; none if it refers to none.

    :param end: address after the instruction.
    """
    if "(%rip)" in text:
        relative = _RELATIVE.search(text)
        return () if relative is None else (end + int(f"{relative[1]}{relative[2] or 0}", 16) & ADDRESS_MASK,)
    if "%" in text or "$" in text or "(" in text:  # most instructions
        return ()
    target = _TARGET.search(text)
    return () if target is None else (int(target[1], 16),)
