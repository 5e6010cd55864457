"""Lazily fetched bytes equal the original bytes, and few bytes are fetched."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sframe_unwind.errors import FormatError
from sframe_unwind.memory import LazyBytes, lazy_memory, take


class Source:
    """Bytes that record which of them were asked for."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.fetched: list[tuple[int, int]] = []

    def __call__(self, offset: int, size: int) -> bytes:
        self.fetched.append((offset, size))
        assert offset >= 0
        assert size > 0
        assert offset + size <= len(self.content), "asked for more than there is"
        return self.content[offset : offset + size]


BOUND = st.one_of(st.none(), st.integers(-60, 260))


@given(st.binary(max_size=200), st.integers(1, 64), st.lists(st.tuples(BOUND, BOUND), max_size=20))
def test_every_slice_is_that_of_the_bytes(
    content: bytes, chunk: int, slices: list[tuple[int | None, int | None]]
) -> None:
    lazy = LazyBytes(Source(content), len(content), chunk)
    assert len(lazy) == len(content)
    for start, stop in slices:
        assert lazy[start:stop] == content[start:stop]


@given(st.binary(min_size=1, max_size=200), st.integers(1, 64), st.lists(st.integers(0, 199), max_size=20))
def test_every_byte_is_that_of_the_bytes(content: bytes, chunk: int, places: list[int]) -> None:
    lazy = LazyBytes(Source(content), len(content), chunk)
    for place in places:
        if place < len(content):
            assert lazy[place] == content[place]
        else:
            with pytest.raises(IndexError):
                lazy[place]


def test_a_negative_index_is_refused() -> None:
    """Records are never counted from the end: a negative index is a mistake."""
    with pytest.raises(IndexError):
        LazyBytes(Source(b"abc"), 3)[-1]


def test_nothing_is_fetched_until_asked_for_and_nothing_twice() -> None:
    source = Source(bytes(range(256)) * 16)
    lazy = LazyBytes(source, 4096, 1024)
    assert source.fetched == []
    assert lazy[1030:1040] == source.content[1030:1040]
    assert lazy[1500] == source.content[1500]
    assert source.fetched == [(1024, 1024)]
    assert lazy[1000:1100] == source.content[1000:1100]
    assert source.fetched == [(1024, 1024), (0, 1024)]


def test_the_last_piece_is_short() -> None:
    source = Source(bytes(1500))
    assert LazyBytes(source, 1500, 1024)[1499] == 0
    assert source.fetched == [(1024, 476)]


def test_a_large_read_is_one_fetch() -> None:
    source = Source(bytes(100_000))
    assert len(LazyBytes(source, 100_000, 1024)[10:90_000]) == 89_990
    assert source.fetched == [(10, 89_990)]


def test_take() -> None:
    assert take(b"abcdef", 2, 3, "record") == b"cde"
    assert take(b"abcdef", 6, 0, "record") == b""


@pytest.mark.parametrize(
    ("offset", "size", "message"),
    [
        (4, 3, "record needs 3 bytes, the section has 2 left (.sframe offset 0x4)"),
        (9, 1, "record needs 1 byte, the section has 0 left (.sframe offset 0x9)"),
        (-2, 2, "record needs 2 bytes, the section has 8 left (.sframe offset -0x2)"),
    ],
)
def test_take_beyond_the_end(offset: int, size: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        take(b"abcdef", offset, size, "record")
    assert str(caught.value) == message


def test_size_that_no_sequence_has() -> None:
    """A damaged file can claim a section of 2^63 bytes."""
    assert len(lazy_memory(lambda _, size: bytes(size), 0, 1 << 63)) == sys.maxsize
