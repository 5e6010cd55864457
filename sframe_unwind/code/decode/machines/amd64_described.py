"""The effects of AMD64's instructions that VEX does not know, by capstone's operands."""

from __future__ import annotations

import re

from sframe_unwind.code.decode.instruction import (
    ADD,
    ANYTHING,
    ELSEWHERE,
    REGISTER,
    Expression,
    Instruction,
    Store,
)
from sframe_unwind.code.decode.machines.base import (
    STOP,
    Disassembled,
    Like,
    signed,
    writing,
)

RAX, RDX, RCX, RBX, RSI, RDI = range(6)
V0 = 17
"""The first vector register."""
LEGACY_PREFIXES = frozenset(b"\x66\x67\x2e\x36\x3e\x26\x64\x65\xf0\xf2\xf3")
_XOP = b"\x8f"
"""The first byte of a prefix of AMD's, and of ``pop``, which VEX knows."""
_APX_MAP = 4
"""The map of EVEX in which legacy instructions have other registers."""
_NAMED_ONLY = re.compile(
    r"clwb|clflush|cldemote|prefetch|rdpid|rdrand|rdseed|rd[fg]sbase|wr[fg]sbase|[lsm]fence|clac|stac|cli$|sti$|swapgs"
    r"|wrmsr|wb(no)?invd|invd|invlpg|invpcid|hlt|lgdt|lidt|lldt|ltr|wrpkru|verr|verw|incssp|rdssp|set\w+|str[wlq]?$"
    r"|sldt|smsw|sgdt|sidt|xsave|fxsave|adcx|adox|crc32|popcnt|lzcnt|tzcnt|movbe|movdir|sha(1|256)|gf2p8|mov[lq]?$|ptwrite"
)
"""Mnemonics of instructions that write only their operands, and state that only systems see."""
_ALSO = {"rdmsr": (RAX, RDX), "xgetbv": (RAX, RDX), "rdpkru": (RAX, RDX), "rdpmc": (RAX, RDX)}
"""Instructions that also write other registers."""
_SCALARS = {
    **dict.fromkeys(("vmovq", "vmovsd", "vmovlps", "vmovhps", "vmovlpd", "vmovhpd", "vpextrq"), 8),
    **dict.fromkeys(("vmovd", "vmovss", "vextractps", "vpextrd"), 4),
    "vpextrw": 2,
    "vpextrb": 1,
}
"""Sizes in bytes of the data that is moved between memory and one element of a vector register."""
_EVEX_STORES = {
    1: frozenset((0x11, 0x13, 0x17, 0x29, 0x2B, 0x7E, 0x7F, 0xD6, 0xE7)),
    2: frozenset((*range(0x10, 0x16), *range(0x20, 0x26), *range(0x30, 0x36), 0x63, 0x8A, 0x8B, *range(0xA0, 0xA4))),
    3: frozenset((*range(0x14, 0x18), 0x19, 0x1B, 0x1D, 0x39, 0x3B)),
}
"""The opcodes of EVEX with a form that writes to memory, by map: moves, narrowing, compression, extraction."""
_IMPLICIT = re.compile(r"vp?cmp[ei]str|vmaskmov(dqu|ps|pd)|vzero|v?pscatter|tile")
_UNSIZED = re.compile(r"scatter|compress|xsave|fxsave|enqcmd|movdir64b|s[gi]dt")


_MULTIPLY_ADD = {0xB4: "vpmadd52luq", 0xB5: "vpmadd52huq"}
"""The opcodes of AVX-IFMA, with a VEX prefix; ``vfmadd231pd`` has the same prefix and the same operands."""
_MULTIPLY_ADD_DOUBLES = 0xB8
_LOADING = frozenset(_MULTIPLY_ADD.values())
"""Mnemonics of instructions with a VEX prefix that only read their operand in memory."""


def like(raw: bytes) -> Like | None:
    """Return ``vfmadd231pd`` for an instruction of AVX-IFMA: it also reads and writes its first operand.

    Neither VEX nor capstone knows AVX-IFMA (VEX.128.66.0F38.W1 and VEX.256.66.0F38.W1).
    """
    if len(raw) < 5 or raw[0] != 0xC4 or raw[1] & 0x1F != 2 or raw[2] & 0x83 != 0x81:
        return None
    mnemonic = _MULTIPLY_ADD.get(raw[3])
    return None if mnemonic is None else Like(mnemonic, raw[:3] + bytes((_MULTIPLY_ADD_DOUBLES,)) + raw[4:])


def describe(found: Disassembled) -> Instruction | None:
    """Return the effects of an instruction that VEX does not know: AVX-512, and instructions that few programs use."""
    mnemonic, raw = found.mnemonic, found.raw
    if mnemonic.startswith(("loop", "j")):
        return STOP
    rest = raw.lstrip(bytes(LEGACY_PREFIXES))
    if rest[:1] == _XOP:
        # An instruction that is not a vector instruction may be LWP's, which stores elsewhere.
        if mnemonic[0] != "v":
            return None
    elif rest[:1] in (b"\xc4", b"\xc5", b"\x62"):
        if rest[:1] == b"\x62" and rest[1] & 7 == _APX_MAP:
            return None
        if mnemonic[0] not in "vkabprmst" or _IMPLICIT.match(mnemonic):
            return None
    elif mnemonic not in _ALSO and not _NAMED_ONLY.match(mnemonic):
        return None
    if mnemonic == "movdir64b":
        return writing(found.size, (), tuple(((REGISTER, number, 0), 64, ANYTHING) for number in found.registers[0]))
    stores: list[Store] = []
    for place, known_size, registers in found.memory if _may_store(rest) and mnemonic not in _LOADING else ():
        address, size = (place, known_size) if rest[:1] != b"\x62" else _scaled(rest, mnemonic, place, known_size)
        if address is not None and size and not _UNSIZED.search(mnemonic):
            stores.append((address, size, ANYTHING))
        elif not registers:
            stores.append(ELSEWHERE)
        else:
            stores += [((REGISTER, number, 0), ANYTHING, ANYTHING) for number in registers if number < V0]
    return writing(found.size, (*found.all_registers, *_ALSO.get(mnemonic, ())), tuple(stores))


def _may_store(rest: bytes) -> bool:
    """Return whether an instruction with an operand in memory may write to it.

    :param rest: the instruction without legacy prefixes.
    """
    opcodes = _EVEX_STORES.get(rest[1] & 7) if rest[0] == 0x62 else None
    return opcodes is None or rest[4] in opcodes


def _scaled(rest: bytes, mnemonic: str, address: Expression | None, size: int) -> tuple[Expression | None, int]:
    """Return address and size of EVEX's operand in memory; ``None``: the address is not known.

    A distance of one byte counts operands.  Capstone has the wrong size for some that are smaller than a register.

    :param rest: the instruction without legacy prefixes.
    :param address: address by capstone.
    :param size: size by capstone, in bytes.
    """
    if size >= 16:
        return address, size
    scalar = _SCALARS.get(mnemonic)
    if scalar is None or address is None:
        return None, 0
    if rest[5] & 0xC0 != 0x40:
        return address, scalar
    distance = signed(rest[7 if rest[5] & 7 == 4 else 6], 8) * scalar
    if address[0] == REGISTER:
        return (REGISTER, address[1], distance), scalar
    return (ADD, (REGISTER, address[1][1], distance), address[2]), scalar
