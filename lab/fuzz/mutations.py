"""Mutations of a section, chosen by a random number generator: bytes, blocks, and extreme values of fields."""

from __future__ import annotations

from random import Random
from typing import Callable

from lab.fuzz.fields import Field
from lab.fuzz.seeds import Seed

_MOST = 4
"""Maximum number of changes to one section; with more, hardly any gets past the header."""


class Mutator:
    """Makes damaged sections from undamaged ones.

    :param seeds: the undamaged sections.
    :param fields: locates the fields of a section.
    """

    def __init__(self, seeds: tuple[Seed, ...], fields: Callable[[Seed], tuple[Field, ...]]) -> None:
        self._seeds = seeds
        self._fields = [fields(seed) for seed in seeds]
        # Fields first and most often, because the decoder depends on them.
        self._changes: tuple[Callable[[Random, bytearray], None], ...] = (
            _flip_bit,
            _set_byte,
            _set_bytes,
            _cut,
            _grow,
            _remove,
            _repeat,
            self.splice,
        )

    def mutate(self, random: Random) -> Seed:
        """Return a damaged section, with the name and the address of the original."""
        number = random.randrange(len(self._seeds))
        seed = self._seeds[number]
        data = bytearray(seed.data)
        for _ in range(random.randint(1, _MOST)):
            if random.random() < 0.6:
                _set_field(random, data, random.choice(self._fields[number]))
            elif data:
                random.choice(self._changes)(random, data)
        return seed._replace(data=bytes(data))

    def splice(self, random: Random, data: bytearray) -> None:
        """Replace the end of a section by the end of another one."""
        other = random.choice(self._seeds).data
        data[random.randrange(len(data)) :] = other[random.randrange(len(other)) :]


def _set_field(random: Random, data: bytearray, field: Field) -> None:
    """Set a field to an extreme value, to a length that occurs in the section, or to a value close to its own."""
    offset, size, byteorder = field
    if offset + size > len(data):
        return
    top = 1 << 8 * size
    old = int.from_bytes(data[offset : offset + size], byteorder)
    new = random.choice(
        (
            *(0, 1, 2, top - 1, top - 2, top // 2, top // 2 - 1, top // 2 + 1),
            *(len(data), len(data) - offset),
            *(old + 1, old - 1, old * 2, old ^ 1 << random.randrange(8 * size), random.randrange(top)),
        )
    )
    data[offset : offset + size] = (new % top).to_bytes(size, byteorder)


def _flip_bit(random: Random, data: bytearray) -> None:
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set_byte(random: Random, data: bytearray) -> None:
    data[random.randrange(len(data))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))


def _set_bytes(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data))
    data[at : at + 16] = random.randbytes(len(data[at : at + 16]))


def _cut(random: Random, data: bytearray) -> None:
    del data[random.randrange(len(data)) :]


def _grow(random: Random, data: bytearray) -> None:
    data += random.choice((bytes(random.randrange(64)), random.randbytes(random.randrange(64))))


def _remove(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data))
    del data[at : at + random.randrange(1, 32)]


def _repeat(random: Random, data: bytearray) -> None:
    at = random.randrange(len(data))
    data[at:at] = data[at : at + random.randrange(1, 64)]
