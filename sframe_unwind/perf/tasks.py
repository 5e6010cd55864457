"""Decodes the records of tasks: PERF_RECORD_COMM, PERF_RECORD_FORK and PERF_RECORD_EXIT."""

from __future__ import annotations

from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.constants import MISC_COMM_EXEC
from sframe_unwind.perf.cursor import Cursor


class Comm(NamedTuple):
    """A thread got a name."""

    pid: int
    tid: int
    name: str
    is_exec: bool
    """The process executed another program, which discards its mappings."""


class Fork(NamedTuple):
    """A process or thread was created."""

    pid: int
    parent_pid: int
    """Equal to ``pid``: a thread was created."""
    tid: int
    parent_tid: int


class Exit(NamedTuple):
    """A thread ended."""

    pid: int
    tid: int


def read_comm(cursor: Cursor, misc: int) -> Comm:
    """Decode the body of a PERF_RECORD_COMM.

    :raises FormatError: it is too short.
    """
    return Comm(cursor.u32(), cursor.u32(), cursor.text(), bool(misc & MISC_COMM_EXEC))


def read_fork(cursor: Cursor) -> Fork:
    """Decode the body of a PERF_RECORD_FORK.

    :raises FormatError: it is too short.
    """
    return Fork(cursor.u32(), cursor.u32(), cursor.u32(), cursor.u32())


def read_exit(cursor: Cursor) -> Exit:
    """Decode the body of a PERF_RECORD_EXIT.

    :raises FormatError: it is too short.
    """
    pid, _, tid = cursor.u32(), cursor.u32(), cursor.u32()
    return Exit(pid, tid)
