"""s390x's instructions that work only on memory, or on a size that registers hold.

VEX translates most of them to loops that pass a number from one round to the next, and lifts only one round.
"""

from __future__ import annotations

from sframe_unwind.code.decode.folding import mixed, unknown
from sframe_unwind.code.decode.instruction import (
    ADD,
    AND,
    ANYTHING,
    CONSTANT,
    EXTEND,
    LOAD,
    REGISTER,
    RESULT,
    Expression,
    Instruction,
    Store,
)
from sframe_unwind.code.decode.machines.base import anywhere_from, writing

_BY_LENGTH = frozenset((0xD1, 0xD2, 0xD3, 0xD4, 0xD6, 0xD7, 0xDC, 0xDE, 0xDF, 0xE2, 0xE8, 0xEA))
"""First bytes of those whose second byte is the length: mvn, mvc, mvz, nc, oc, xc, tr, ed, edmk, unpku, mvcin ..."""
_BY_TWO_LENGTHS = frozenset((0xF0, 0xF1, 0xF2, 0xF3, 0xF8, 0xFA, 0xFB, 0xFC, 0xFD))
"""Those with a length in half of the second byte: srp, mvo, pack, unpk, zap, ap, sp, mp, dp."""
_SIXTEEN = frozenset((0xE1, 0xE9))
"""pku, pka"""
_KEYED = frozenset((0xD9, 0xDA, 0xDB))
"""mvck, mvcp, mvcs: up to 256 bytes."""
_READING = {0xD5: (), 0xF9: (), 0xDD: (1, 2), 0xD0: (1, 2)}
"""clc, cp, trt, trtr, and the registers that they write."""
_MOST = 256
_MVC, _WORD = 0xD2, 8
_MVST = 0xB255
_PAIRS = {
    2: {b"\x0e": (True, 0), b"\x0f": (False, 0)},  # mvcl, clcl
    4: {b"\xa8": (True, 1), b"\xa9": (False, 1)},  # mvcle, clcle
}
_PAIRS_WITH_TWO_OPCODES = frozenset(
    (
        *(0xB240, 0xB241, 0xB254, 0xB257, 0xB263, 0xB2A5, 0xB2A6, 0xB2A7),
        *(0xB990, 0xB991, 0xB992, 0xB993, 0xB9B0, 0xB9B1, 0xB9B2, 0xB9B3, 0xB9BD, 0xB9BF),
        *(
            0xB91E,
            0xB928,
            0xB929,
            0xB92A,
            0xB92B,
            0xB92C,
            0xB92D,
            0xB92E,
            0xB92F,
            0xB938,
            0xB939,
            0xB93A,
            0xB93C,
            0xB93E,
        ),
        0xB93F,
    )
)
"""Instructions on strings, tables and ciphers: their operands are pairs of registers, an address and a length."""
_READING_PAIRS = frozenset((0xB241, 0xB257, 0xB9BD, 0xB9BF))
"""cksm, cuse, trtre, trte"""
_SEARCHING = frozenset((0xB25D, 0xB25E, 0xB9BE))
"""clst, srst, srstu: they advance in two strings, whose addresses are in the two registers."""


def storage_to_storage(raw: bytes) -> Instruction | None:
    """Return such an instruction at the start of some bytes."""
    if len(raw) < 6:
        raw = raw + bytes(6 - len(raw))
    first = raw[0]
    if first >= 0xD0:
        return _six_bytes(raw, raw[1])
    for size, known in _PAIRS.items():
        if raw[:1] in known:
            stores, shift = known[raw[:1]]
            return _pairs(size, (raw[1] >> 4, raw[1] & 0xF), stores, shift == 1)
    code = first << 8 | raw[1]
    if code == _MVST:  # to where a byte is found
        return writing(4, (raw[3] >> 4, raw[3] & 0xF), (((REGISTER, raw[3] >> 4, 0), RESULT, ANYTHING),))
    if code in _SEARCHING:
        return writing(4, (raw[3] >> 4, raw[3] & 0xF))
    if code in _PAIRS_WITH_TWO_OPCODES and not raw[3] & 0x10:  # pairs begin with an even register
        # kmctr and kma have a third operand.
        operands = (raw[3] >> 4, raw[3] & 0xF, raw[2] >> 4)
        return _pairs(4, operands, code not in _READING_PAIRS, True)
    return None


def _six_bytes(raw: bytes, length: int) -> Instruction | None:
    first = raw[0]
    place = _place(raw[2:4])
    size: int | None = None
    if first in _BY_LENGTH:
        size = length + 1
    elif first in _BY_TWO_LENGTHS:
        size = (length >> 4) + 1
    elif first in _SIXTEEN:
        size = 16
    elif first in _KEYED or (first == 0xE5 and raw[1] in (0x0A, 0x0E, 0x0F)):  # mvcrl, mvcsk, mvcdk
        size = _MOST
    elif first in _READING:
        return writing(6, _READING[first])
    elif first == 0xEB and raw[5] in (0x8E, 0x8F):  # mvclu, clclu
        return _pairs(6, (raw[1] >> 4, raw[1] & 0xF), raw[5] == 0x8E, True)
    if size is None:
        return None
    source = _place(raw[4:6])
    loads = [(LOAD, one, max(size, _WORD), False) for one in (source, place)]
    value = unknown(*loads)
    if first == _MVC and size == _WORD:
        # It moves byte by byte: a destination that begins within the source gets its first bytes several times.
        value = loads[0] if _is_apart(source, place) else mixed(loads[0])
    return writing(6, (1,) if first == 0xDF else (), ((place, size, value),))


def _is_apart(source: Expression, place: Expression) -> bool:
    """Return whether a word at an address certainly does not begin within the one at another address."""
    return source[:-1] == place[:-1] and not 0 < place[-1] - source[-1] < _WORD


def _place(field: bytes) -> Expression:
    base, distance = field[0] >> 4, (field[0] & 0xF) << 8 | field[1]
    return (REGISTER, base, distance) if base else (CONSTANT, distance)


def _pairs(size: int, operands: tuple[int, ...], stores: bool, also_first: bool) -> Instruction:
    """Return an instruction that advances in pairs of registers.

    :param also_first: whether registers 0 and 1 hold further operands, and may change.
    """
    written = {number for operand in operands for number in (operand, operand | 1)}
    value = unknown(*(_word_at((REGISTER, operand, 0)) for operand in operands[1:]))
    places: tuple[Store, ...] = ()
    first = (REGISTER, operands[0], 0)
    if stores and not also_first:  # mvcl
        places = ((first, (AND, (REGISTER, operands[0] | 1, 0), 0xFFFFFF), value),)
    elif stores and len(operands) == 2:
        places = ((first, (REGISTER, operands[0] | 1, 0), value),)
    elif stores:
        places = tuple(map(anywhere_from, sorted({*operands, 1})))
    found = writing(size, sorted(written | ({0, 1} if also_first else set())), places)
    advanced = {operand: _advanced(operand) for operand in operands}
    return found._replace(puts=tuple((number, advanced.get(number, known)) for number, known in found.puts))


def _advanced(operand: int) -> Expression:
    """Return the address in the first register of a pair after an instruction that advances by up to the length."""
    first = (REGISTER, operand, 0)
    return unknown(first, (ADD, first, (REGISTER, operand | 1, 0)))


def _word_at(address: Expression) -> Expression:
    """Return any word of the object at an address."""
    return (LOAD, (ADD, address, RESULT), _WORD, False)


def execute(raw: bytes, target: bytes) -> Instruction | None:
    """Return the effects of ``exrl`` or ``ex``, whose target gets bits of a register in its second byte."""
    size = 6 if raw[:1] == b"\xc6" else 4
    register, first = raw[1] >> 4, target[0] if target else 0
    if len(target) < 6 or first < 0xD0:
        return None
    found = _six_bytes(target, target[1])
    if found is None:
        return None
    if register and first in _BY_LENGTH:
        added = (EXTEND, (REGISTER, register, 0), 8, False)
        copied = unknown(_word_at(_place(target[4:6])))
        stores = tuple((address, (ADD, added, (CONSTANT, length)), copied) for address, length, _ in found.stores)
        found = found._replace(stores=stores)
    elif register and first not in _READING:
        found = found._replace(stores=tuple((address, _MOST, value) for address, _, value in found.stores))
    return found._replace(size=size)
