"""Makes the output for the functions of a large file in several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Callable, TypeVar

from sframe_unwind.cli.output import descriptor
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.errors import SFrameError
from sframe_unwind.workers import Lost, can_fork, in_order

Made = TypeVar("Made")

_LEAST = 1 << 18
"""Bytes of code from which on processes are started: they take 20 ms, and this is made in 200 ms."""
_CHUNK = 1 << 15
"""Bytes of code that a process gets at a time."""


def made_in_order(make: Callable[[CodeRange], Made], functions: Sequence[CodeRange], jobs: int) -> Iterator[Made]:
    """Yield what is made for each function, in the order of the functions.

    :param make: called with the extent of a function, here or in a process that is forked; its result is pickled.
    :param jobs: maximum number of processes.
    :raises BrokenPipeError: nobody reads the output any more.
    :raises SFrameError: as ``make`` raises it, after all that precedes it.
    """
    if jobs == 1 or sum(end - start for start, end in functions) < _LEAST or not can_fork():
        yield from map(make, functions)
        return

    def chunk(functions: Sequence[CodeRange]) -> list[Made] | None:
        try:
            return list(map(make, functions))
        except SFrameError:
            return None

    chunks = list(_chunks(functions))
    for asked, found in zip(chunks, in_order(chunk, chunks, jobs, descriptor())):
        # What failed there fails here again, where the error can be reported as usual.  If a process was ended, as the
        # kernel does when memory is short, its work is done here.
        yield from map(make, asked) if found is None or isinstance(found, Lost) else found


def _chunks(functions: Sequence[CodeRange]) -> Iterator[list[CodeRange]]:
    """Yield consecutive functions with some :data:`_CHUNK` bytes of code."""
    found: list[CodeRange] = []
    size = 0
    for part in functions:
        found.append(part)
        size += part.end - part.start
        if size >= _CHUNK:
            yield found
            found, size = [], 0
    if found:
        yield found
