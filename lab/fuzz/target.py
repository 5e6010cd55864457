"""The operations that run on each input: open, list, look up, walk, dump.  They may only raise documented errors."""

from __future__ import annotations

import functools
import json
from collections import Counter
from itertools import islice
from random import Random

from lab.fuzz.fields import fields
from lab.fuzz.mutations import Mutator
from lab.fuzz.seeds import Seed, seeds
from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError, MemoryReadError, StepError
from sframe_unwind.report import dump, dump_json
from sframe_unwind.sframe.constants import PcType
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Function, Miss
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind.walk import MAX_FRAMES, Registers, Walk

_LOOKUPS = 6
"""Number of functions in which addresses are looked up; the dump decodes all functions."""
_STACK = 0x7FFF_0000_0000
_STACK_SIZE = 0x800
_FRAMES = 64


class WrongAnswerError(AssertionError):
    """An answer that is wrong for any bytes."""


@functools.cache
def _mutator() -> Mutator:
    return Mutator(seeds(), fields)


def made(number: int) -> Seed:
    """Return the input of a number."""
    return _mutator().mutate(Random(number))


def exercise(seed: Seed, seen: Counter[str]) -> None:
    """Run all operations on one section.

    :param seen: counts the results.
    :raises WrongAnswerError: an answer contradicts itself.  Any other exception is also a failure.
    """
    try:
        section = Section(seed.data, seed.address)
    except FormatError:
        seen["rejected"] += 1
        return
    _dump(section, seen)
    functions = _functions(section)
    for function in islice(functions, _LOOKUPS):
        _look_up(section, function, seen)
    if section.arch is not None:
        _walk(section, section.arch, functions, seen)
    seen["answered"] += 1


def _functions(section: Section) -> list[Function]:
    found = []
    for table in section.tables:
        for number in range(len(table)):
            try:
                found.append(table.function(number))
            except FormatError:
                continue
    return found


def _dump(section: Section, seen: Counter[str]) -> None:
    errors: list[FormatError] = []
    text = "".join(dump.to_text([section], errors.append))
    functions = text.count("func idx [")
    if functions != sum(map(len, section.tables)):
        raise WrongAnswerError(f"the dump shows {functions} functions")
    listed = json.loads("".join(dump_json.to_json("fuzzed", [section], errors.append)))["sections"]
    if len(listed) != len(section.tables):
        raise WrongAnswerError(f"the JSON has {len(listed)} tables")
    seen["rows"] += sum(len(function["rows"]) for table in listed for function in table["functions"])
    seen["functions refused"] += len(errors) // 2


def _look_up(section: Section, function: Function, seen: Counter[str]) -> None:
    for pc in {function.start - 1, function.start, function.start + function.fde.size // 2, function.end - 1}:
        try:
            match = section.lookup(pc)
        except FormatError:
            seen["lookups refused"] += 1
            continue
        if isinstance(match, Miss):
            continue
        seen["lookups answered"] += 1
        found = match.function
        offset = pc - found.start
        if not 0 <= offset < found.fde.size:
            raise WrongAnswerError(f"{pc:#x} is not in the function at {found.start:#x} of {found.fde.size} bytes")
        if found.fde.pc_type is PcType.MASK:
            offset %= found.fde.repetition_size
        if match.row_start > offset:
            raise WrongAnswerError(f"the row at {match.row_start:#x} begins after offset {offset:#x}")


def _walk(section: Section, abi: Arch, functions: list[Function], seen: Counter[str]) -> None:
    """Walk over a stack whose words are code addresses of the section's functions, and addresses of the stack."""
    places = [function.start + 1 for function in functions[:8]] or [0]

    def read_word(address: int) -> int:
        if not _STACK <= address < _STACK + _STACK_SIZE:
            raise MemoryReadError(address, 8)
        number = address >> 3
        return address + 64 if number % 3 == 0 else places[number % len(places)]

    def read_register(number: int) -> int:
        if number > 64:
            raise StepError(f"no register {number}")
        return _STACK + 8 * number

    module = Module("fuzzed", [(0, 1 << 64)], lambda: section)
    for pc in places[:3]:
        walk = Walk(
            abi, Modules(abi, [module]), Registers(pc, _STACK, _STACK + 16), read_word, read_register, limit=_FRAMES
        )
        frames = sum(1 for _ in walk)
        if walk.end is None or frames > min(_FRAMES, MAX_FRAMES):
            raise WrongAnswerError(f"a walk of {frames} frames ended for no reason")
        seen["frames"] += frames
        seen[f"end: {walk.end.value}"] += 1
