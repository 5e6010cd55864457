"""Follows a recursion in one step for many frames, because its frames differ only in their places on the stack.

A step for each frame takes some microseconds in Python; a stack overflow has 100,000 frames and more.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.unwind.step import Caller
from sframe_unwind.unwind.walk import Frame, Registers
from sframe_unwind.unwind_rule import CFA, RegisterRule, UnwindRule

RECENT = 64
"""Number of frames in which a repetition is searched for."""
_LONGEST = RECENT // 4
"""Maximum number of frames that repeat."""
_BLOCK = 1 << 16
"""Number of bytes of stack that are read at a time."""
_LEAST = 8
"""Number of rounds that a block must have: with larger frames, a stack is not deep."""


class WalkedFrame(NamedTuple):
    """A frame that a walk has passed, and its caller."""

    registers: Registers
    caller: Caller
    rule: UnwindRule


class _Slot(NamedTuple):
    """The place on the stack of a register that a frame saved."""

    address: int
    value: int
    change: int
    """The difference of the value in the next round further out: 0, or the size of a round in bytes."""


class _Round(NamedTuple):
    """The frames of one round of a recursion: the last round that was walked."""

    length: int
    """Number of frames."""
    size: int
    """Number of bytes that they take on the stack."""
    fixed: tuple[_Slot, ...]
    """The slots that decide whether another round follows."""
    frame_pointers: tuple[int, ...]
    """The addresses of the slots of frame pointers, the outermost last."""
    fp_change: int | None
    """See :attr:`Repetition.fp_change`."""


class Repetition(NamedTuple):
    """The rounds of a recursion that follow the last one that was walked."""

    rounds: int
    """Number of rounds; at least 1."""
    length: int
    """Number of frames in each."""
    size: int
    """Number of bytes that each takes on the stack: by which SP and CFA of a frame differ from the round before."""
    fp_change: int | None
    """By which the frame pointer of a frame differs from the round before; ``None``: each round has another value."""
    outer: Registers
    """The registers of the frame outside them, as a step for each frame would give them."""


def skip_repetition(recent: Sequence[WalkedFrame], arch: Arch, read: ReadMemory) -> tuple[int, Registers]:
    """Return how many frames repeat the recent ones, and the registers of the frame outside them.

    See :func:`repetition`.
    """
    found = repetition(recent, arch, read)
    if found is None:
        return 0, Registers(*recent[-1].caller[1:])
    return found.rounds * found.length, found.outer


def repetition(recent: Sequence[WalkedFrame], arch: Arch, read: ReadMemory) -> Repetition | None:
    """Return the frames that repeat the recent ones; ``None``: there are none.

    :param recent: consecutive frames, the outermost last; no signal interrupted one of them.
    :param read: reads the memory of the process.
    """
    _, pc, sp, fp = recent[-1].caller
    found = _round(recent, arch)
    if found is None:
        return None
    rounds, at_once = 0, _BLOCK // found.size
    while at_once:
        try:
            same = _same_rounds(found, rounds, at_once, arch, read)
        except MemoryReadError:  # the end of the stack's memory is near
            same, at_once = 0, at_once // _LEAST
            continue
        rounds += same
        if same < at_once:
            break
    if not rounds:
        return None
    if found.frame_pointers:
        word = read(found.frame_pointers[-1] + rounds * found.size, WORD_SIZE)
        fp = int.from_bytes(word, arch.byteorder)
    outer = Registers(pc, sp + rounds * found.size, fp)
    return Repetition(rounds, found.length, found.size, found.fp_change, outer)


def further_out(frame: Frame, by: Repetition, rounds: int) -> Frame:
    """Return a frame of the last round that was walked as it is some rounds further out.

    :param by: a repetition whose change of the frame pointer is known.
    """
    level, pc, sp, fp, cfa, unwinder, interrupted = frame
    size = rounds * by.size
    outer_cfa = None if cfa is None else cfa + size
    outer_fp = fp + rounds * (by.fp_change or 0)
    # Without names, which take as long as all the rest: LLDB 22 takes 50,000 frames at each stop.
    return Frame._make((level + rounds * by.length, pc, sp + size, outer_fp, outer_cfa, unwinder, interrupted))


def _round(recent: Sequence[WalkedFrame], arch: Arch) -> _Round | None:
    """Return the shortest round that the last frames repeat; ``None``: there is none, or its rules are unusual."""
    for length in range(1, _LONGEST + 1):
        last, before = recent[-length:], recent[-2 * length : -length]
        size = last[-1].registers.sp - before[-1].registers.sp
        if 0 < size <= _BLOCK // _LEAST and not size % WORD_SIZE and all(map(_repeats, last, before, [size] * length)):
            return _with_slots(last, size, arch)
    return None


def _repeats(frame: WalkedFrame, before: WalkedFrame, size: int) -> bool:
    """Return whether a frame equals the corresponding frame of the round before, moved by the size of a round."""
    pc, sp, _ = before.registers
    return frame.registers[:2] == (pc, sp + size) and frame.caller.cfa == before.caller.cfa + size


def _with_slots(last: Sequence[WalkedFrame], size: int, arch: Arch) -> _Round | None:
    has_chain = any(rule.cfa is not None and rule.cfa.base == arch.fp for _, _, rule in last)
    fixed, frame_pointers = [], []
    for _, caller, rule in last:
        return_address = _saved_at(rule.ra, caller)
        if not _is_plain(rule, arch) or return_address is None:
            return None
        fixed.append(_Slot(return_address, caller.pc, 0))
        if rule.fp is not None:
            frame_pointer = _saved_at(rule.fp, caller)
            if frame_pointer is None:
                return None
            frame_pointers.append(frame_pointer)
            if has_chain:
                fixed.append(_Slot(frame_pointer, caller.fp, size))
    addresses = [slot.address for slot in fixed]
    if (has_chain and not frame_pointers) or max(addresses) - min(addresses) >= size:
        return None
    fp_change = size if has_chain else None if frame_pointers else 0
    return _Round(len(last), size, tuple(fixed), tuple(frame_pointers), fp_change)


def _is_plain(rule: UnwindRule, arch: Arch) -> bool:
    cfa = rule.cfa
    return cfa is not None and not cfa.in_memory and cfa.base in (arch.sp, arch.fp) and not rule.ra_signed


def _saved_at(rule: RegisterRule | None, caller: Caller) -> int | None:
    """Return the address of the slot of a register; ``None``: it is not saved at a fixed distance from the CFA."""
    return caller.cfa + rule.offset if rule is not None and rule.base == CFA and rule.in_memory else None


def _same_rounds(found: _Round, known: int, at_once: int, arch: Arch, read: ReadMemory) -> int:
    """Return how many of the next rounds are the same, up to a maximum.

    :param known: number of rounds that are already known to be the same.
    :param at_once: the maximum; the rounds are read at once.
    """
    size = found.size
    first = min(slot.address for slot in found.fixed)
    words = _words(read(first + (known + 1) * size, at_once * size), arch)
    same = at_once
    for address, value, change in found.fixed:
        column = words[(address - first) // WORD_SIZE :: size // WORD_SIZE].tolist()
        start = value + (known + 1) * change
        expected = [start] * at_once if not change else list(range(start, start + at_once * change, change))
        if column != expected:
            same = min(same, next(place for place, pair in enumerate(zip(column, expected)) if pair[0] != pair[1]))
    return same


def _words(data: bytes, arch: Arch) -> memoryview:
    """Return the words in some bytes.  Only those that are looked at become numbers, which takes most of the time."""
    if arch.byteorder == sys.byteorder:
        return memoryview(data).cast("Q")
    words = array("Q", data)
    words.byteswap()
    return memoryview(words)
