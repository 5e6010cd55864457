"""The names of events: those that a recording has, else those of the kernel's numbers."""

from __future__ import annotations

from sframe_unwind.perf.cursor import Cursor

_HARDWARE = (
    *("cycles", "instructions", "cache-references", "cache-misses", "branch-instructions", "branch-misses"),
    *("bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"),
)
_SOFTWARE = (
    *("cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults", "major-faults"),
    *("alignment-faults", "emulation-faults", "dummy", "bpf-output", "cgroup-switches"),
)
_BY_TYPE = (_HARDWARE, _SOFTWARE)
"""``PERF_COUNT_HW_...`` and ``PERF_COUNT_SW_...`` by ``config``, for the types 0 and 1."""
UPDATE_NAME = 2
"""``PERF_EVENT_UPDATE__NAME``"""


def usual_name(kind: int, config: int, number: int) -> str:
    """Return a name for an event of which the recording has none.

    :param kind: ``type`` of the attributes.
    :param number: position among the events, from 0.
    """
    names = _BY_TYPE[kind] if kind < len(_BY_TYPE) else ()
    return names[config] if config < len(names) else f"event {number + 1}"


def read_descriptions(cursor: Cursor) -> list[str]:
    """Decode HEADER_EVENT_DESC: the names of the events, in the order of their attributes.

    :raises FormatError: it is too short.
    """
    count, size = cursor.u32(), cursor.u32()
    found = []
    for _ in range(count):
        cursor.take(size)
        ids = cursor.u32()
        found.append(cursor.text(cursor.u32()))
        cursor.skip(ids)
    return found
