"""AArch64: the facts that VEX lacks or has wrong.  Instructions are little-endian in both byte orders of data."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sframe_unwind.arch import Arch, aarch64
from sframe_unwind.code.decode.folding import mixed, unknown
from sframe_unwind.code.decode.instruction import (
    ANYTHING,
    CC_LEFT,
    CC_OPERATION,
    CC_RIGHT,
    CONSTANT,
    ELSEWHERE,
    EVERYWHERE,
    HIGH,
    REGISTER,
    REST,
    RESULT,
    SIGN,
    STRIP,
    Instruction,
    Kind,
    Store,
)
from sframe_unwind.code.decode.machines import jumps
from sframe_unwind.code.decode.machines.aarch64_shape import displacement
from sframe_unwind.code.decode.machines.aarch64_vectors import described
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

_SIZE = (4,)
_V0 = 64
_LR = (REGISTER, aarch64.LR, 0)
_A_KEY, _B_KEY, _A_KEY_WITH_ZERO, _B_KEY_WITH_ZERO = range(4)
"""With the stack pointer as the modifier, and with 0."""
_ENTRY_MARKS = (0xD503245F, 0xD503233F, 0xD503237F)
"""``bti c``, ``paciasp``, ``pacibsp``"""
_SIGNING = {
    0xD503233F: _A_KEY,  # paciasp
    0xD503237F: _B_KEY,  # pacibsp
    0xD503231F: _A_KEY_WITH_ZERO,  # paciaz
    0xD503235F: _B_KEY_WITH_ZERO,  # pacibz
    0xDAC103FE: _A_KEY,  # pacia x30, sp
    0xDAC107FE: _B_KEY,  # pacib x30, sp
}
_STRIPPING = {
    0xD50323BF: _A_KEY,  # autiasp
    0xD50323FF: _B_KEY,  # autibsp
    0xD503239F: _A_KEY_WITH_ZERO,  # autiaz
    0xD50323DF: _B_KEY_WITH_ZERO,  # autibz
    0xDAC113FE: _A_KEY,  # autia x30, sp
    0xDAC117FE: _B_KEY,  # autib x30, sp
    0xD50320FF: None,  # xpaclri
    0xDAC143FE: None,  # xpaci x30
}
_SIGNING_X17 = {0xD503211F, 0xD503215F, 0xD503219F, 0xD50321DF}
"""``pacia1716``, ``pacib1716``, ``autia1716``, ``autib1716``: nops for VEX, as for processors without them."""
_BLOCK_STORES = {0xD50B7420, 0xD50B7460, 0xD50B7480}
"""``dc zva``, ``dc gva``, ``dc gzva``, without their register: they store to a block of memory, or tag it."""
_STREAMING, _STREAMING_BY_REGISTER = 0xD503407F, 0xD51B4240
"""``smstart`` and ``smstop`` without what they concern; ``msr svcr`` without its register."""
_CHANGING_FLAGS = {0xD500401F, 0xD500403F, 0xD500405F}
"""``cfinv``, ``xaflag``, ``axflag``: nops for VEX, and they change the condition code."""
_SYSTEM, _SYSTEM_WITH_RESULT = 0b1101010100001, 0b1101010100101
"""The highest bits of ``sys`` and ``sysl``."""
_CACHES, _TRANSLATIONS = 7, 8
"""Operands of ``sys`` for instructions on caches, and on the translation of addresses."""
_CACHE_OPERATIONS = frozenset((1, 5, 6, 8, 9, 10, 11, 12, 13, 14))
"""Their second operand: those of ``ic``, ``dc`` and ``at`` that neither store nor concern a guarded control stack."""
_GUARDED_STACK = {0xD50B7700: False, 0xD50B7740: False, 0xD52B7720: True, 0xD52B7760: True}
"""``gcspushm``, ``gcsss1``, ``gcspopm``, ``gcsss2`` without their register, and whether they write it.

Their stores are to memory of the guarded control stack, to which no other store is permitted (Arm ARM, D11): no frame
is there."""
_HINT = 0xD503201F
_HARMLESS_HINTS = frozenset((*range(7), *range(16, 21), 22, *range(32, 40, 2)))
"""``nop``, ``yield``, ``wfe``, ``wfi``, ``sev``, ``sevl``, ``dgh``; ``esb`` to ``csdb``; ``clrbhb``; ``bti``."""
_CHECKED_FEATURES = 40
"""The hint ``chkfeat``, which writes x16."""
_SELECT_STACK = 0xD50040BF
"""``msr spsel`` without its number: ``sp`` becomes another register."""
_VECTORS = (*range(_V0, _V0 + 32), *range(_V0 + HIGH, _V0 + HIGH + 32))
_ANYTHING = writing(4, (*range(32), *_VECTORS), (EVERYWHERE,))
_WITHOUT_RESULT = writing(4, (), (EVERYWHERE,))
"""A system instruction whose operation is not known: it can write only the register that it names (Arm ARM, C4.1)."""
_RETURNING = {0xD65F0BFF, 0xD65F0FFF}
"""``retaa``, ``retab``."""
_NEGATIVE = re.compile(r"0xf[0-9a-f]{15}")
"""As capstone writes a number of vectors; objdump gives it a sign."""
_ZERO = 31
_NOP, _TRAP = 0xD503201F, 0
_RELATIONS = {0: "==", 1: "!=", 2: ">=", 3: "<", 8: ">", 9: "<="}
"""The architecture's condition codes."""
_ALWAYS = (14, 15)
_SUBTRACTIONS = {3: 32, 4: 64}
"""``ARM64G_CC_OP_SUB32`` and ``SUB64``, and the bits that they subtract."""


_NAMED_ONLY = re.compile(
    r"swp|cas|ld(add|clr|eor|set|[su]m(ax|in))|st(add|clr|eor|set|[su]m(ax|in))|ldapu?r|stlu?r|[ls]dtr|ldtr|sttr|[ls]dnp|stnp"
    r"|ldnp|irg|gmi|addg|subg|subps?|stz?2?g|ldz?g|st2g|stgp|cpyf?[pme]|setg?[pme]|mrs|msr|sb$|ssbb|pssbb|csdb|esb"
    r"|wf[ei]|sevl?|pac|aut|xpac|cfinv|[ax]aflag|rmif|setf|crc32|prf|rprfm|ldar|stllr|ldlar|stgm|stzgm|ldgm|dgh|bti|nop|yield"
)
"""Mnemonics of instructions that write only the registers that they name, and memory that these point to."""
_FIRST_ONLY = ("irg", "gmi", "addg", "subg", "subp", "mrs", "ldg")
"""Those that write only their first register."""
_SAME_MEMORY = ("prf", "ld1", "ldr", "ldff", "ldnf", "ldnt", "ldapr", "ldapur", "ldtr", "ldnp", "ldg", "ldar", "ldlar")
_MOST_STORED = 64
"""Maximum number of bytes that one instruction stores, unless it is scalable."""
_SIZED = re.compile(r"(swp|casp?|(ld|st)(add|clr|eor|set|[su]m(ax|in))|stlur|sttr|stnp)(al?|l)?([bh]?)$")
"""Mnemonics of instructions that store as many bytes as their first operand, two of these, or the suffix has."""
_BYTES = {"b": 1, "h": 2, "w": 4, "x": 8, "s": 4, "d": 8, "q": 16}
_TAGGED = {"stg": 16, "stzg": 16, "st2g": 32, "stz2g": 32}
"""Bytes of memory that get a tag, and for some a value; these instructions write none of the registers they name."""
_TAGGING = ("stg", "st2g")
"""Those among them that do not change the memory itself."""
_COPYING = re.compile(r"cpyf?[pme]|setg?[pme]")
"""Mnemonics of instructions that copy and fill memory, which QEMU does not know yet."""
_SECURE = ("hvc", "smc")
_CALL_CLOBBERED = tuple(range(18))


def _describe(found: Disassembled) -> Instruction | None:
    """Return the effects of an instruction that VEX does not know.

    Instructions write only general registers that they name, except calls of firmware and hypervisors.
    """
    mnemonic, word = found.mnemonic, int.from_bytes(found.raw, "little")
    scalable = described(found)
    if scalable is not None:
        return scalable
    if mnemonic in _SECURE:
        return writing(4, _CALL_CLOBBERED)
    if _is_branch(word):
        return STOP
    is_scalable = _is_scalable(word)
    if not (is_scalable or _is_vector(word) or _NAMED_ONLY.match(mnemonic)):
        return None
    written = _written(found, is_scalable)
    if _COPYING.match(mnemonic) and not is_scalable:
        # The first of three parts can move the registers to the end, and make the number of bytes negative.
        return writing(4, written, (anywhere_from(word & _ZERO),))
    bases = {number for _, _, registers in found.memory for number in registers if number < _V0}
    if "]!" in found.operands or "], " in found.operands:
        written += bases
    return writing(4, written, _stores(found, bases, is_scalable))


def _is_branch(word: int) -> bool:
    """Return whether an instruction is in the group of branches and exceptions (Arm ARM, C4.1), and no system one."""
    return word >> 26 & 0b111 == 0b101 and word >> 22 != 0b1101010100


def _is_scalable(word: int) -> bool:
    """Return whether an instruction is in the group of SVE or SME (Arm ARM, C4.1)."""
    group = word >> 25 & 0xF
    return group == 0b0010 or (group == 0 and bool(word >> 31))


def _is_vector(word: int) -> bool:
    """Return whether an instruction processes vectors, or loads or stores them (Arm ARM, C4.1)."""
    group = word >> 25 & 0xF
    return group & 0b0111 == 0b0111 or (group & 0b0101 == 0b0100 and bool(word >> 26 & 1))


def _written(found: Disassembled, is_scalable: bool) -> list[int]:
    """Return the registers that an instruction writes, without those of its addresses."""
    if found.mnemonic in _TAGGED:
        return []
    written = list(found.all_registers)
    if (found.mnemonic in _FIRST_ONLY or is_scalable) and found.registers:
        return [*found.registers[0], *(number for number in written if number >= _V0)]
    return written


def _stores(found: Disassembled, bases: set[int], is_scalable: bool) -> tuple[Store, ...]:
    """Return the stores of an instruction.

    :param bases: the general registers in its addresses.
    """
    mnemonic = found.mnemonic
    if mnemonic.startswith(_SAME_MEMORY) or mnemonic in _TAGGING:
        return ()
    if not bases and (found.memory or mnemonic.startswith("st")):  # a vector of addresses
        words = [(REGISTER, number, 0) for _, _, registers in found.memory for number in registers]
        return ((mixed(*words, (REGISTER, REST, 0)), ANYTHING, ANYTHING),)
    addresses = [address for address, _, _ in found.memory if address is not None]
    is_sized = not is_scalable and "], " not in found.operands
    if not is_sized or len(addresses) < len(found.memory):
        return tuple(map(anywhere_from, sorted(bases)))
    size = _stored(found) or (CONSTANT, _MOST_STORED)
    value = RESULT if mnemonic in _TAGGED else ANYTHING
    return tuple((address, size, value) for address in addresses)


def _stored(found: Disassembled) -> int:
    """Return the number of bytes that an instruction stores; 0: it is not known for this instruction."""
    if found.mnemonic in _TAGGED:
        return _TAGGED[found.mnemonic]
    matched = _SIZED.match(found.mnemonic)
    each = _BYTES.get((matched[6] or found.operands[:1]) if matched else "", 0)
    return 2 * each if found.mnemonic.startswith(("casp", "stnp")) else each


def _sizes(_code: bytes, _at: int) -> Sequence[int]:
    return _SIZE


def _special(raw: bytes) -> Instruction | None:
    # VEX ignores the effect of hints on the return address, and does not know instructions that are not hints.
    word = int.from_bytes(raw[:4], "little")
    if word in _SIGNING:
        signed_by = SIGN, _LR, _SIGNING[word]
        return Instruction(size=4, kind=Kind.NEXT, puts=((aarch64.LR, signed_by),), stores=(), exits=(), target=None)
    if word in _STRIPPING:
        return Instruction(
            size=4,
            kind=Kind.NEXT,
            puts=((aarch64.LR, (STRIP, _LR, _STRIPPING[word])),),
            stores=(),
            exits=(),
            target=None,
        )
    if word in _RETURNING:
        return Instruction(size=4, kind=Kind.RETURN, puts=(), stores=(), exits=(), target=None)
    if len(raw) < 4:
        return None
    operation = word >> 26
    if operation == 0b000101:  # b
        return jump(4, 4 * signed(word, 26))
    if operation == 0b100101:  # bl
        return call(4, 4 * signed(word, 26), aarch64.LR)
    if word >> 24 == 0x54:  # b.cond, and bc.cond, which capstone does not count among the jumps
        relation = None if word & 0xF in _ALWAYS else _RELATIONS.get(word & 0xF)
        return conditional_jump(4, 4 * signed(word >> 5, 19), relation)
    return trap(4) if not word >> 16 else _system(word)  # udf


def _system(word: int) -> Instruction | None:
    """Return the effects of an instruction that concerns the processor, which VEX knows incompletely."""
    register = word & 0x1F
    if word >> 20 == 0xD53:  # mrs; of some system registers VEX has nothing, or another value
        read = ((register, unknown((REGISTER, REST, 0))),) if register != _ZERO else ()
        return Instruction(
            size=4, kind=Kind.NEXT, puts=(*read, (CC_OPERATION, ANYTHING)), stores=(), exits=(), target=None
        )
    if word & ~0x700 == _STREAMING or word & ~0x1F == _STREAMING_BY_REGISTER:
        return _ANYTHING  # vectors have another length after it
    if word & ~0x1F in _BLOCK_STORES:
        return writing(4, (), (ELSEWHERE if register == _ZERO else anywhere_from(register),))
    if word in _CHANGING_FLAGS:
        return writing(4)
    if word in _SIGNING_X17:
        return writing(4, (17,))
    if word & ~0xFE0 == _HINT:
        hint = word >> 5 & 0x7F
        return writing(4, (16,)) if hint == _CHECKED_FEATURES else None if hint in _HARMLESS_HINTS else _ANYTHING
    if (has_result := _GUARDED_STACK.get(word & ~0x1F)) is not None:
        return writing(4, (register,) if has_result and register != _ZERO else (), (ELSEWHERE,))
    if word >> 19 == _SYSTEM:
        is_known = (
            word >> 12 & 0xF == _CACHES and word >> 8 & 0xF in _CACHE_OPERATIONS
        ) or word >> 12 & 0xF == _TRANSLATIONS
        return writing(4) if is_known else _WITHOUT_RESULT
    if word >> 19 == _SYSTEM_WITH_RESULT:
        return _WITHOUT_RESULT if register == _ZERO else writing(4, (register,), (EVERYWHERE,))
    return _ANYTHING if word & ~0xF00 == _SELECT_STACK else None


def _is_page_relative(raw: bytes) -> bool:
    return int.from_bytes(raw[:4], "little") & 0x9F000000 == 0x90000000  # adrp


def _is_padding(raw: bytes) -> bool:
    return int.from_bytes(raw[:4], "little") in (_NOP, _TRAP)


def _condition(helper: str, constants: Sequence[int]) -> tuple[str, int] | None:
    relation = _RELATIONS.get(constants[0] >> 4) if helper == "arm64g_calculate_condition" else None
    return None if relation is None else (relation, 1)


def _objdump_text(mnemonic: str, operands: str) -> str:
    # objdump writes decimal numbers within brackets and after them.
    plain, bracket, address = operands.partition("[")
    address = ADDRESSES.sub(lambda found: str(int(found[0], 16)), address)
    if not bracket and _RELATIVE.match(mnemonic):
        others, mark, target = plain.rpartition("#")
        plain = f"{others}{mark}{small_address(target)}"
    else:
        plain = _NEGATIVE.sub(lambda found: str(signed(int(found[0], 16), 64)), plain)
    return f"{mnemonic} {plain}{bracket}{address}".rstrip()


_RELATIVE = re.compile(r"(?:b|bl|bc?\.\w+|cbn?z|tbn?z|adrp?|ldr|ldrsw|prfm)$")
"""The mnemonics of instructions whose last operand can be an address relative to their own."""
_TARGET = re.compile(_RELATIVE.pattern[:-1] + r" [^\[]*#?0x([0-9a-f]+)$")


def _references(text: str, _end: int) -> tuple[int, ...]:
    target = _TARGET.match(text)
    return () if target is None else (int(target[1], 16),)


def _directive_name(number: int) -> str:
    # Of a vector register, a function preserves the lower half; GNU as has no name for the whole one here.
    return f"d{number - _V0}" if number >= _V0 else named(aarch64.LITTLE)(number)


def _machine(arch: Arch) -> Machine:
    return Machine(
        arch=arch,
        vex_name="ARCH_ARM64_LE",
        big_endian=False,
        vex_registers={
            **{f"x{n}": n for n in range(31)},
            "xsp": aarch64.SP,
            "cc_op": CC_OPERATION,
            "cc_dep1": CC_LEFT,
            "cc_dep2": CC_RIGHT,
        },
        vex_vectors={f"q{n}": _V0 + n for n in range(32)},
        general=tuple(range(32)),
        preserved=frozenset((*range(19, 30), aarch64.SP, *range(_V0 + 8, _V0 + 16))),
        sp_at_entry=0,
        callee_area=(0, 0),
        stack_alignment=16,
        kept_alignment=16,
        own_convention=(16, 17),
        other_links=(),
        ra_slot=None,
        max_size=4,
        sizes=_sizes,
        special=_special,
        shape=displacement,
        system_call=8,
        system_call_arguments=(0, 1, 2, 3, 4, 5),
        system_call_results=(0,),
        ending_calls=frozenset((93, 94, 139)),  # exit, exit_group, rt_sigreturn
        is_page_relative=_is_page_relative,
        is_padding=_is_padding,
        condition=_condition,
        comparisons=_SUBTRACTIONS,
        unsigned_comparisons=frozenset(_SUBTRACTIONS),
        describe=_describe,
        jumps=jumps.aarch64,
        like=None,
        execute=None,
        in_block_loop=None,
        unsized_helpers=(),
        helpers={"arm64g_dirtyhelper_": ()},
        capstone_registers={
            **{f"{size}{n}": _V0 + n for n in range(32) for size in "vqdshbz"},
            **{f"{size}{n}": n for n in range(31) for size in "xw"},
            "fp": aarch64.FP,
            "lr": aarch64.LR,
            "sp": aarch64.SP,
            "wsp": aarch64.SP,
        },
        returns_through=None,
        att_syntax=False,
        objdump_text=_objdump_text,
        references=_references,
        disassembler=("CS_ARCH_ARM64", "CS_MODE_ARM"),
        directive_name=_directive_name,
        has_access=True,
        entry_marks=frozenset(word.to_bytes(4, "little") for word in _ENTRY_MARKS),
        plt_entry_sizes=(16, 24),
    )


LITTLE = _machine(aarch64.LITTLE)
BIG = _machine(aarch64.BIG)
