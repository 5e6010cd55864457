"""s390x: the facts that VEX lacks or has wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import s390x
from sframe_unwind.code.decode.folding import add, mixed, unknown
from sframe_unwind.code.decode.instruction import (
    ADD,
    ANYTHING,
    CC_LEFT,
    CC_OPERATION,
    CC_RIGHT,
    CONSTANT,
    EXTEND,
    HIGH,
    LOAD,
    PC_RELATIVE,
    REGISTER,
    REST,
    RESULT,
    SHIFT_LEFT,
    Exit,
    Expression,
    Instruction,
    Kind,
)
from sframe_unwind.code.decode.machines import jumps
from sframe_unwind.code.decode.machines.base import (
    ADDRESSES,
    STOP,
    Disassembled,
    Machine,
    anywhere_from,
    call,
    conditional_jump,
    jump,
    named,
    signed,
    small_address,
    trap,
    writing,
)
from sframe_unwind.code.decode.machines.s390x_loops import in_block_loop
from sframe_unwind.code.decode.machines.s390x_shape import displacement
from sframe_unwind.code.decode.machines.s390x_storage import execute, storage_to_storage

_SIZES = ((2,), (4,), (4,), (6,))
"""Sizes by the two highest bits of the first byte."""
_FPRS = (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)
"""Floating-point registers in the order of DWARF's numbers from 16."""
_PADDING = (b"\x07\x00", b"\x07\x07", b"\x47\x00\x00\x00", b"\xc0\x04\x00\x00\x00\x00")
_SIGNED_COMPARISON, _UNSIGNED_COMPARISON = 1, 2
"""``S390_CC_OP_SIGNED_COMPARE`` and ``UNSIGNED_COMPARE``."""
_RELATIONS = {8: "==", 6: "!=", 4: "<", 2: ">", 12: "<=", 10: ">="}
"""Relations by the mask of a conditional jump: 8 equal, 4 low, 2 high."""
_V0 = 16
_VECTOR_SIZE = 16
"""Size in bytes."""
_FIRST_IS_HIGH = 8
"""The bit of an instruction on vectors for a first operand among the registers 16 to 31 (RXB)."""
_REVERSE, _LOAD_REVERSED, _STORE_REVERSED = b"\xb9\x0f", b"\x0f", b"\x2f"
"""The first bytes of ``lrvgr``; the last of ``lrvg`` and ``strvg``."""
_STFLE = b"\xb2\xb0"
_JUMPING = {0x44: 4, 0x45: 4, 0x05: 2, 0x0B: 2, 0x0C: 2}
"""First bytes and sizes of ``ex``, ``bal``, ``balr``, ``bsm`` and ``bassm``, which may continue anywhere."""
_CANNOT_BE, _ALWAYS = 1, 15


_FLOATING = (0xB3, 0xED, 0xE7)
"""First bytes of instructions on floating-point and vector registers; of their general registers, they
write the first only."""
_COMPARING = ("kdb", "keb", "cdb", "ceb", "tceb", "tcdb", "tcxb")
_TO_ONE_REGISTER = re.compile(r"cl[fg][edx]br$")
"""Conversions to an unsigned integer, which has one register; others may have a pair."""
_FROM_FLOATING = ("esdtr", "esxtr", "eedtr", "eextr")
"""Instructions that extract a part of a decimal floating-point number."""
_HARMLESS = ("tend", "tabort", "ppa", "etnd", "ecag", "pfd", "pfdrl", "niai", "bpp", "bprp")


def _describe(found: Disassembled) -> Instruction | None:
    """Return the effects of an instruction that VEX does not know, mostly on floating-point numbers."""
    raw = found.raw
    if found.mnemonic in _FROM_FLOATING:
        return writing(found.size, (raw[3] >> 4,))  # capstone takes it for a floating-point register
    if raw[0] not in _FLOATING and found.mnemonic not in _HARMLESS:
        return None
    first = found.registers[0] if found.registers else ()
    written = [*first]
    for number in first:
        if number < _V0:
            written += [] if _TO_ONE_REGISTER.match(found.mnemonic) else [number | 1]
        elif number < HIGH:  # the other half of 128 bits
            other = _V0 + _FPRS.index(_FPRS[number - _V0] ^ 2)
            written += [other, other + HIGH]
    bases = {number for _, _, registers in found.memory for number in registers if number < _V0}
    is_read = found.mnemonic in (*_COMPARING, *_HARMLESS)
    return writing(found.size, written, () if is_read else tuple(map(anywhere_from, sorted(bases))))


def _sizes(code: bytes, at: int) -> Sequence[int]:
    return _SIZES[code[at] >> 6] if at < len(code) else ()


def _special(raw: bytes) -> Instruction | None:
    # VEX reads the target of execute instructions from its own process's memory.
    if raw[:1] == b"\xc6" and len(raw) > 1 and not raw[1] & 0xF:
        if len(raw) < 6:
            return STOP
        offset = 2 * int.from_bytes(raw[2:6], "big", signed=True)
        return Instruction(size=6, kind=Kind.STOP, puts=(), stores=(), exits=(), target=(PC_RELATIVE, offset))
    if raw[0] in _JUMPING:
        return (
            Instruction(size=_JUMPING[raw[0]], kind=Kind.STOP, puts=(), stores=(), exits=(), target=None)
            if len(raw) >= _JUMPING[raw[0]]
            else STOP
        )
    if raw[:1] == b"\xcc" and len(raw) >= 6 and raw[1] & 0xF == 6:  # brcth, whose distance VEX cuts off to 16 bits
        target = (PC_RELATIVE, 2 * int.from_bytes(raw[2:6], "big", signed=True))
        return Instruction(
            size=6,
            kind=Kind.NEXT,
            puts=((raw[1] >> 4, ANYTHING),),
            stores=(),
            exits=(Exit(target, 1, 0, None),),
            target=None,
        )
    if raw[:2] == _STFLE and len(raw) >= 4:
        size = (ADD, (SHIFT_LEFT, (EXTEND, (REGISTER, 0, 0), 8, False), 3), (CONSTANT, 8))
        base, distance = raw[2] >> 4, (raw[2] & 0xF) << 8 | raw[3]
        place: Expression = (REGISTER, base, distance) if base else (CONSTANT, distance)
        return writing(4, (0,), ((place, size, RESULT),))
    if raw[:2] == b"\xb9\x11" and len(raw) >= 4:  # lngfr, for which VEX takes the operand from the result's register
        return writing(4, (raw[3] >> 4,))
    if raw[:1] == b"\xe7" and raw[5:6] == b"\x3f":  # vstl, which stores 16 bytes at most
        base, displacement = raw[2] >> 4, (raw[2] & 0xF) << 8 | raw[3]
        address = (REGISTER, base, displacement) if base else (CONSTANT, displacement)
        return writing(
            6, (), ((address, (CONSTANT, _VECTOR_SIZE), unknown(*_words(raw[1] >> 4, raw[4] & _FIRST_IS_HIGH))),)
        )
    found = _reversed(raw) or storage_to_storage(raw) or _branch(raw)
    if found is not None:
        return found
    return trap(2) if raw[:1] == b"\0" and len(raw) > 1 else None  # compilers make traps by a jump to such bytes


def _words(vector: int, is_high: int) -> tuple[Expression, ...]:
    """Return the words of a vector register, of which the number has four bits and one that is in another byte."""
    first = _V0 + _FPRS.index(vector)
    return ((REGISTER, REST, 0),) if is_high else ((REGISTER, first, 0), (REGISTER, first + HIGH, 0))


def _reversed(raw: bytes) -> Instruction | None:
    """Return an instruction that reverses the bytes of a word: VEX has one operation for each byte."""
    if raw[:2] == _REVERSE and len(raw) >= 4:
        return Instruction(
            size=4,
            kind=Kind.NEXT,
            puts=((raw[3] >> 4, mixed((REGISTER, raw[3] & 0xF, 0))),),
            stores=(),
            exits=(),
            target=None,
        )
    if raw[:1] != b"\xe3" or raw[5:6] not in (_LOAD_REVERSED, _STORE_REVERSED):
        return None
    distance = signed(raw[4] << 12 | (raw[2] & 0xF) << 8 | raw[3], 20)
    index, base, register = raw[1] & 0xF, raw[2] >> 4, raw[1] >> 4
    address: Expression = (REGISTER, base, distance) if base else (CONSTANT, distance)
    if index:
        address = add((REGISTER, index, 0), address)
    if raw[5:6] == _LOAD_REVERSED:
        puts, stores = ((register, mixed((LOAD, address, 8, False))),), ()
        return Instruction(size=6, kind=Kind.NEXT, puts=puts, stores=stores, exits=(), target=None)
    stored = ((address, 8, mixed((REGISTER, register, 0))),)
    return Instruction(size=6, kind=Kind.NEXT, puts=(), stores=stored, exits=(), target=None)


def _branch(raw: bytes) -> Instruction | None:
    """Return a jump or call relative to the instruction, with 16 or 32 bits for its distance in units of two bytes."""
    size = {0xA7: 4, 0xC0: 6}.get(raw[0], 0)
    if not size or len(raw) < size:
        return None
    operand, operation = raw[1] >> 4, raw[1] & 0xF
    offset = 2 * int.from_bytes(raw[2:size], "big", signed=True)
    if operation == 4 and operand:
        if operand == _ALWAYS:
            return jump(size, offset)
        return conditional_jump(size, offset, _RELATIONS.get(operand & ~_CANNOT_BE))
    return call(size, offset, operand) if operation == 5 and operand == s390x.RA else None


def _is_page_relative(_raw: bytes) -> bool:
    return False


def _is_padding(raw: bytes) -> bool:
    # bcr 0 and bc 0 to anywhere; the words of data in the entries of a PLT
    return raw in _PADDING or raw[:1] == b"\0" or (raw[:1] == b"\x07" and len(raw) > 1 and raw[1] < 0x10)


_RELATIVE = re.compile(
    r"j|br[acx]|larl$|c(?:l?g?)[ri]j|"
    r"(?:l|lg|lgf|llgf|lh|lgh|llh|llgh|st|stg|sth|ex|pfd|c|cg|cgf|cl|clg|clgf|ch|cgh|clh|clgh)rl$"
)
"""The mnemonics of instructions whose last operand is an address relative to their own."""
_PRELOADING = {"bprp": (1, 2), "bpp": (1,)}
"""The instructions that predict a branch, and their operands that are addresses: that of the branch and its target."""


def _objdump_text(mnemonic: str, operands: str) -> str:
    # objdump writes decimal numbers, except for addresses; capstone writes those below 10 without 0x.
    texts = operands.replace(", ", ",").split(",")
    if mnemonic in _PRELOADING:
        addresses = _PRELOADING[mnemonic]
    else:
        is_relative = _RELATIVE.match(mnemonic) and not texts[-1].startswith("%")
        addresses = (len(texts) - 1,) if is_relative else ()
    for number, text in enumerate(texts):
        texts[number] = _address(text) if number in addresses else ADDRESSES.sub(_decimal, text)
    return f"{mnemonic} {','.join(texts)}".rstrip()


def _address(text: str) -> str:
    # Capstone writes an address at the end of the address space as a negative number.
    return f"{int(text, 16) & ADDRESS_MASK:#x}" if text.startswith("-") else small_address(text)


def _decimal(found: re.Match[str]) -> str:
    return str(int(found[0], 16))


def _references(text: str, _end: int) -> tuple[int, ...]:
    return tuple(int(address, 16) for address in ADDRESSES.findall(text))  # other numbers are decimal


def _condition(helper: str, constants: Sequence[int]) -> tuple[str, int] | None:
    relation = _RELATIONS.get(constants[0] & ~_CANNOT_BE) if helper == "s390_calculate_cond" else None
    return None if relation is None else (relation, 2)


MACHINE = Machine(
    arch=s390x.ARCH,
    vex_name="ARCH_S390X",
    big_endian=True,
    vex_registers={
        **{f"r{n}": n for n in range(16)},
        "cc_op": CC_OPERATION,
        "cc_dep1": CC_LEFT,
        "cc_dep2": CC_RIGHT,
    },
    vex_vectors={f"v{n}": 16 + _FPRS.index(n) for n in range(16)},
    general=tuple(range(16)),
    preserved=frozenset((*range(6, 14), 15, *range(24, 32))),
    sp_at_entry=s390x.SP_FROM_CFA,
    callee_area=(8, -s390x.SP_FROM_CFA),  # the first word is the back chain
    stack_alignment=8,
    kept_alignment=8,
    own_convention=(0, 1),
    other_links=(0,),  # r0 cannot be the target of a jump; by the ABI, it may have the static chain, which is data
    ra_slot=None,
    max_size=6,
    sizes=_sizes,
    special=_special,
    shape=displacement,
    system_call=1,
    system_call_arguments=(2, 3, 4, 5, 6, 7),
    system_call_results=(2,),
    ending_calls=frozenset((1, 248, 173, 119)),  # exit, exit_group, rt_sigreturn, sigreturn
    is_page_relative=_is_page_relative,
    is_padding=_is_padding,
    condition=_condition,
    comparisons={_SIGNED_COMPARISON: 64, _UNSIGNED_COMPARISON: 64},
    unsigned_comparisons=frozenset((_UNSIGNED_COMPARISON,)),
    describe=_describe,
    unsized_helpers=(),
    helpers={"s390x_dirtyhelper_vec": ()},
    jumps=jumps.s390x,
    like=None,
    execute=execute,
    in_block_loop=in_block_loop,
    capstone_registers={
        **{name: n for n in range(16) for name in (f"r{n}", str(n))},
        **{f"{size}{n}": _V0 + _FPRS.index(n) for n in range(16) for size in "fv"},
    },
    returns_through=s390x.RA,
    att_syntax=False,
    objdump_text=_objdump_text,
    references=_references,
    disassembler=("CS_ARCH_SYSZ", "CS_MODE_BIG_ENDIAN"),
    directive_name=named(s390x.ARCH, "%"),
    has_access=False,
    entry_marks=frozenset(),
    plt_entry_sizes=(32,),
)
