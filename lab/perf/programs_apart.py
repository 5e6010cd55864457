"""Changes a recording so that each program that a process executes is a separate process.

perf 6.1 keeps the mappings that a process had before it executed another program, such as those of its parent, and ends
its stacks early or leaves out frames.
"""

from __future__ import annotations

import struct
from itertools import count
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.perf.attributes import Events
from sframe_unwind.perf.constants import MISC_COMM_EXEC, RecordType, SampleType
from sframe_unwind.perf.header import read_header
from sframe_unwind.perf.records import Record, read_records
from sframe_unwind.perf.sample import id_time, sample_time
from sframe_unwind.perf.source import open_sources

_FIRST = 0x7000_0000
_TWO, _FOUR = (RecordType.MMAP, RecordType.MMAP2, RecordType.COMM), (RecordType.FORK, RecordType.EXIT)
"""Records that begin with process and thread, and those that also have the parent's."""


class Apart(NamedTuple):
    """The changed recording."""

    data: bytes
    originals: dict[int, int]
    """The original thread for each new number."""


def programs_apart(path: Path) -> Apart:
    """Change a recording of one event in a file."""
    source, _ = open_sources(path)
    header = read_header(source)
    events = Events()
    events.add(header.attributes[0])
    (event,) = events.all

    def time(record: Record) -> int:
        if record.kind == RecordType.SAMPLE:
            return sample_time(record.head(), event, header.byteorder)
        return id_time(record.body(), event, header.byteorder)

    wanted = (RecordType.SAMPLE, *_TWO, *_FOUR)
    records = [record for record in read_records(source, header.records, header.byteorder) if record.kind in wanted]
    before = 8 * sum(bool(event.sample_type & bit) for bit in (SampleType.IDENTIFIER, SampleType.IP))
    data, numbers = bytearray(path.read_bytes()), count(_FIRST)
    now: dict[int, int] = {}
    originals: dict[int, int] = {}
    for record in sorted(records, key=time):
        at = record.offset + (before if record.kind == RecordType.SAMPLE else 0)
        form = "<IIII" if record.kind in _FOUR else "<II"
        fields = struct.unpack_from(form, data, at)
        is_exec = record.kind == RecordType.COMM and record.misc & MISC_COMM_EXEC
        is_child = record.kind == RecordType.FORK and fields[0] != fields[1]
        if is_exec or is_child:  # a process can have the number of an older one
            now[fields[0]] = next(numbers)
            originals[now[fields[0]]] = fields[0]
        struct.pack_into(form, data, at, *(now.get(number, number) for number in fields))
    return Apart(bytes(data), originals)
