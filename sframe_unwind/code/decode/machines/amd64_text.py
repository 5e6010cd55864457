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
    """Return a table: capstone's mnemonic with the suffix of an operand size, and the mnemonic without it."""
    return {f"{name}{size}": name for name in names for size in "bwlq"}


_ALWAYS = {
    **{name: name[:-1] for name in ("pushq", "popq", "callq", "retq", "jmpq", "leaveq", "movabsq")},
    **_without_size("shld", "shrd", "in", "out", "stos", "lods", "scas"),
}
_PREFIXES = {"repne": "repnz", "repe": "repz"}
_BY_A_REGISTER = _without_size(*_NAMES)
_BY_THE_LAST_OPERAND = _without_size("shl", "shr", "sar", "rol", "ror", "rcl", "rcr")
"""The operand ``%cl`` of a shift is a count: its size is not that of the shifted value."""
_WITH_DISPLACEMENT = frozenset(("rbp", "ebp", "r13"))
"""Base registers of addresses that are always encoded with a displacement; an index without a base is, too."""
_REGISTERS = frozenset(
    f"%{name}"
    for name in (
        *(f"{wide}{x}x" for x in "abcd" for wide in ("", "e", "r")),
        *(f"{x}{part}" for x in "abcd" for part in "lh"),
        *(f"{wide}{x}" for x in ("sp", "bp", "si", "di") for wide in ("", "e", "r")),
        *("spl", "bpl", "sil", "dil"),
        *(f"r{number}{part}" for number in range(8, 32) for part in ("", "d", "w", "b")),
    )
)
"""The general registers."""
_SMALL = re.compile(r"(?<!\w)(?=\d(?:[(,]|$))")
"""Matches before a number below 10, which capstone writes without ``0x``: an immediate value, a displacement or an
address, but not a scale, which objdump too writes so: ``8(%rax,%rcx,8)`` is its ``0x8(%rax,%rcx,8)``."""
_NEGATIVE = re.compile(r"(?<=\$)-(?:0x)?[0-9a-f]+")
"""A negative immediate value, which objdump writes as a number of the size of the operands."""
_BITS = {"b": 8, "w": 16, "l": 32, "q": 64}
"""The sizes of operands, by capstone's suffix of the mnemonic."""
_WITH_TOP = frozenset(("fadd", "fmul", "fsub", "fsubr", "fdiv", "fdivr", "fcomi", "fucomi", "fcompi", "fucompi"))
"""Instructions of the x87 whose second operand, the top of the stack, capstone leaves out."""
_FROM_TOP = frozenset(("faddp", "fmulp", "fsubp", "fsubrp", "fdivp", "fdivrp"))
"""Those of which it leaves out the first operand, the top of the stack."""
_POPPING = {"fcompi": "fcomip", "fucompi": "fucomip"}
"""Mnemonics of the manuals, by those of capstone."""
_LARGE = re.compile(r"(?<=\$)\d{19,}")
"""An immediate value of 2^63 or more, which capstone writes as a decimal number."""


def objdump_text(mnemonic: str, operands: str) -> str:
    """Return an instruction of capstone in objdump's notation."""
    prefix, space, name = mnemonic.rpartition(" ")
    prefix = _PREFIXES.get(prefix, prefix)
    if "%st(" in operands:
        return prefix + space + _x87(name, operands)
    if "$-" in operands and (name in _BY_A_REGISTER or name == "pushq"):
        mask = (1 << _BITS[name[-1]]) - 1
        operands = _NEGATIVE.sub(lambda found: hex(int(found[0], 16) & mask), operands)
    name = prefix + space + _mnemonic(name, operands)
    if not operands:
        return name
    begin = operands.find("(")
    if begin >= 0:
        operands = _memory_operand(operands, begin)
    # A displacement has it by now.  What is left are immediate values, addresses in a segment, and absolute ones.
    if "$" in operands or ":" in operands or operands[1:2] in ("", ",") or operands[-2:-1] == " ":
        operands = _SMALL.sub("0x", operands)
        if "$1" in operands or "$9" in operands:
            operands = _LARGE.sub(lambda found: hex(int(found[0])), operands)
    return f"{name} {operands.replace(', ', ',').replace(' {', '{')}"


def _memory_operand(operands: str, begin: int) -> str:
    """Return operands with the displacement and the scale of an address as objdump writes them.

    Regular expressions would make :func:`objdump_text` take three times as long.

    :param begin: the place of the parenthesis before the registers.
    """
    end = operands.find(")", begin)
    if operands.count(",", begin, end) == 1:
        operands = f"{operands[:end]},1{operands[end:]}"  # a base and an index
    before = operands[begin - 1 : begin]
    if before.isdigit():
        is_small = not operands[begin - 2 : begin - 1].isalnum() if begin > 1 else True
        return f"{operands[: begin - 1]}0x{operands[begin - 1 :]}" if is_small else operands
    if (operands[begin + 1] == "," or operands[begin + 2 : begin + 5] in _WITH_DISPLACEMENT) and not before.isalnum():
        return f"{operands[:begin]}0x0{operands[begin:]}"
    return operands


def _x87(name: str, operands: str) -> str:
    """Return an instruction on registers of the x87; ``%st`` is the top of their stack."""
    if "," in operands:
        first, _, second = operands.partition(", ")
        if name.startswith("fcmov"):
            return f"{name} {first},{second.replace('%st(0)', '%st')}"
        return f"{name} {first.replace('%st(0)', '%st')},{second}"
    if name in _FROM_TOP:
        return f"{name} %st,{operands}"
    return f"{_POPPING.get(name, name)} {operands},%st" if name in _WITH_TOP else f"{name} {operands}"


def _mnemonic(name: str, operands: str) -> str:
    """Return a mnemonic without the size of the operands if a register implies it."""
    if name in _BY_A_REGISTER:
        # movq of a vector register is another instruction than mov.
        implied = operands.rpartition(" ")[2] in _REGISTERS or operands.partition(",")[0] in _REGISTERS
        return _BY_A_REGISTER[name] if implied and "mm" not in operands else name
    if name in _BY_THE_LAST_OPERAND:
        return _BY_THE_LAST_OPERAND[name] if operands.rpartition(" ")[2] in _REGISTERS else name
    return _ALWAYS.get(name, name)


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
