"""Fuzzes call frame information: the undamaged inputs, their fields, and the operations."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random

from lab.fuzz.fields import Field
from lab.fuzz.mutations import Mutator
from lab.fuzz.seeds import Seed
from lab.fuzz.target import WrongAnswerError
from sframe_unwind import elf
from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.cfi.index import Index
from sframe_unwind.cfi.records import CfiFunction
from sframe_unwind.cfi.section import CfiSection, SectionData
from sframe_unwind.errors import FormatError, UnsupportedExpressionError
from tests.cfi.encoding import PLENTY, debug_frame
from tests.samples.build import build
from tests.samples.catalogue import ABIS

_NAMES = ("free_walk", "realign", "plt")
_INDEX, _DEBUG = ".eh_frame_hdr", ".debug_frame"
_RULES = 40
"""Maximum number of rows of one function whose rules are made."""
_LOOKUPS = 20


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return the sections of samples of every ABI, and ``.debug_frame`` with every instruction, by name and ABI."""
    return (*_of_samples(), *_written_by_hand())


def _of_samples() -> Iterator[Seed]:
    for abi, described in ABIS.items():
        for name in _NAMES if described.has_libc else _NAMES[:1]:
            with elf.opened(build(name, abi, variant="pac" if described.signs else "O2")) as binary:
                frames, index = (binary.named(section) for section in (".eh_frame", ".eh_frame_hdr"))
                assert frames is not None
                data = binary.contents(frames)
                yield Seed(f"{name} {abi}", data, frames.address)
                if index is not None:
                    gap = bytes(frames.address - index.end)
                    yield Seed(f"{name} {_INDEX} {abi}", binary.contents(index) + gap + data, index.address)


def _written_by_hand() -> Iterator[Seed]:
    for abi, mark in (("amd64", "<"), ("aarch64", "<"), ("s390x", ">")):
        for version, wide in ((1, False), (3, False), (4, True)):
            data, _ = debug_frame(PLENTY, version=version, wide=wide, mark=mark)
            yield Seed(f"version {version} {_DEBUG} {abi}", data, 0)


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return all words, for lengths and addresses, and all bytes, because most other numbers have one byte."""
    arch = _arch(seed)
    found = [Field(offset, 4, arch.byteorder) for offset in range(0, len(seed.data) - 3, 4)]
    return (*found, *(Field(offset, 1, arch.byteorder) for offset in range(len(seed.data))))


def _arch(seed: Seed) -> Arch:
    return BY_NAME[seed.name.rpartition(" ")[2]]


@functools.cache
def _mutator() -> Mutator:
    return Mutator(seeds(), fields)


def made(number: int) -> Seed:
    """Return the input of a number."""
    return _mutator().mutate(Random(number))


def opened(seed: Seed) -> CfiSection:
    """Open an input as the kind of section that its name gives.

    :raises FormatError: its index is malformed.
    """
    arch = _arch(seed)
    if _INDEX not in seed.name:
        return CfiSection(SectionData(seed.address, seed.data), None, arch, debug_frame=_DEBUG in seed.name)
    start = Index(seed.data, seed.address, arch.byteorder).frames
    frames = SectionData(start, seed.data[min(max(start - seed.address, 0), len(seed.data)) :])
    return CfiSection(frames, SectionData(seed.address, seed.data), arch, size_known=False)


def exercise(seed: Seed, seen: Counter[str]) -> None:
    """Find all FDEs, decode them, make the rules of their rows, and look addresses up.

    :param seen: counts the results.
    :raises WrongAnswerError: an answer contradicts itself.  Any other exception is also a failure.
    """
    arch = _arch(seed)
    try:
        section = opened(seed)
        extents = section.extents()
    except FormatError:
        seen["rejected"] += 1
        return
    seen["FDEs refused"] += len(section.problems)
    for start, end, offset in extents:
        try:
            function = section.function(offset)
        except FormatError:
            seen["functions refused"] += 1
            continue
        if (function.start, function.end) != (start, end):
            raise WrongAnswerError(f"the function at {start:#x} is said to be at {function.start:#x}")
        _rules(function, arch, seen)
    for start, end, _ in islice(extents, _LOOKUPS):
        for pc in (start - 1, start, end - 1, end):
            _look_up(section, pc, seen)
    seen["answered"] += 1


def _rules(function: CfiFunction, arch: Arch, seen: Counter[str]) -> None:
    if function.offsets[0] or list(function.offsets) != sorted(set(function.offsets)):
        raise WrongAnswerError(f"the rows begin at {function.offsets[:10]}")
    seen["rows"] += len(function.rows)
    for offset in function.offsets[:_RULES]:
        try:
            rule = function.rule_at(function.start + offset, arch)
        except UnsupportedExpressionError:
            seen["no rule"] += 1
        except FormatError:
            seen["rules refused"] += 1
        else:
            seen["rules"] += 1
            if rule.others is None and not rule.ra_undefined:
                raise WrongAnswerError("a rule of CFI that does not track all registers")


def _look_up(section: CfiSection, pc: int, seen: Counter[str]) -> None:
    try:
        found = section.find(pc)
        if found is None:
            return
        fde = section.records.fde(found)
    except FormatError:
        seen["lookups refused"] += 1
        return
    if not fde.start <= pc < fde.end:
        raise WrongAnswerError(f"{pc:#x} is not from {fde.start:#x} to {fde.end:#x}")
    seen["lookups answered"] += 1
