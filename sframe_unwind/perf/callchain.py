"""The user stacks that the kernel unwound: in samples, or in records of their own where the kernel deferred them.

Since Linux 6.19, the kernel can unwind the user stack on the way back to user space (``perf record --call-graph
fp,defer``).  The chain of the sample then ends with a marker and a cookie, and a later record has the cookie and the
rest of the chain: one for all samples since the thread entered the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.constants import CONTEXT_USER, CONTEXT_USER_DEFERRED, FIRST_CONTEXT
from sframe_unwind.perf.cursor import Cursor


class Deferred(NamedTuple):
    """A PERF_RECORD_CALLCHAIN_DEFERRED."""

    cookie: int
    chain: tuple[int, ...]
    """The pc and the return addresses."""


def read_deferred(cursor: Cursor) -> Deferred:
    """Decode the body of a PERF_RECORD_CALLCHAIN_DEFERRED.

    :raises FormatError: it is too short.
    """
    cookie = cursor.u64()
    return Deferred(cookie, _addresses(cursor.words(cursor.u64())))


def user_chain(callchain: Sequence[int], deferred: Mapping[int, tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the user part of a sample's chain; ``None``: it has none, or the record with it was lost.

    :param deferred: the chains of the records for the sample's thread, by cookie.
    """
    if len(callchain) >= 2 and callchain[-2] == CONTEXT_USER_DEFERRED:
        return deferred.get(callchain[-1])
    if CONTEXT_USER not in callchain:
        return None
    return _addresses(callchain[callchain.index(CONTEXT_USER) :])


def _addresses(chain: Sequence[int]) -> tuple[int, ...]:
    """Return a chain without its markers."""
    return tuple(address for address in chain if address < FIRST_CONTEXT)
