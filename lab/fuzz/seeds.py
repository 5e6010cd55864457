"""Undamaged sections for mutations, of every ABI and version, written by real producers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from sframe_unwind.elf import load
from sframe_unwind.sframe.encode import SectionSpec, describe, encode
from sframe_unwind.sframe.section import Section
from tests.abis.rewrite import rewritten
from tests.samples.build import build
from tests.samples.catalogue import ABIS, SAMPLES


class Seed(NamedTuple):
    """An undamaged section."""

    name: str
    data: bytes
    address: int


_NAMES = ("free_walk", "free_leaf", "realign", "plt")
"""Small samples that together have every kind of function: increments, masks, flexible rows, signed addresses."""


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return all seeds, in a stable order."""
    return (*_written_by_producers(), *_written_by_the_encoder())


def _written_by_producers() -> Iterator[Seed]:
    for name in _NAMES:
        for abi in SAMPLES[name].abis:
            for version in ABIS[abi].versions:
                section = _section(name, abi, version)
                yield Seed(f"{name} {abi} version {version}", encode(describe(section)), section.address)


def _written_by_the_encoder() -> Iterator[Seed]:
    """Yield sections that no producer writes, or none of the installed ones."""
    s390x = _section("free_walk", "s390x", 3)
    yield Seed("s390x version 2", encode(rewritten(s390x, 2)), s390x.address)
    for version in (1, 2, 3):
        section = _section("free_leaf", "amd64", version)
        (table,) = describe(section).tables
        three = (table._replace(offset=None, aux_header=b"auxiliary"),) * 3
        data = encode(SectionSpec(section.address, three))
        yield Seed(f"three tables, version {version}", data, section.address)


def _section(name: str, abi: str, version: int) -> Section:
    (section,) = load(build(name, abi, version, "pac" if ABIS[abi].signs else "O2"), lazy=False)
    return section
