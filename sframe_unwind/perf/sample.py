"""Decodes PERF_RECORD_SAMPLE, and the ``sample_id`` at the end of other records."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sframe_unwind.address import ByteOrder
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.attributes import Attributes
from sframe_unwind.perf.constants import BRANCH_COUNTERS, BRANCH_ENTRY_SIZE, BRANCH_HW_INDEX, ReadFormat, SampleType
from sframe_unwind.perf.cursor import Cursor


class Sample(NamedTuple):
    """One sample.  Fields that the event does not record are 0 or empty."""

    pid: int
    tid: int
    time: int
    """Nanoseconds of the recording's clock."""
    ip: int
    """Address that the CPU was executing, possibly in the kernel."""
    callchain: tuple[int, ...]
    """The stack as the kernel unwound it, with its markers (``PERF_CONTEXT_...``)."""
    abi: int
    """``PERF_SAMPLE_REGS_ABI_...``; 0: the sample has no user registers, such as one of a kernel thread."""
    registers: Mapping[int, int]
    """User registers by the kernel's numbers (``asm/perf_regs.h``)."""
    stack: bytes
    """The copy of the user stack from SP on."""
    stack_is_cut: bool
    """The copy has the full requested size, so the stack may continue beyond it."""
    user_chain: tuple[int, ...] | None = None
    """The user stack as the kernel unwound it: pc and return addresses; ``None``: it was not recorded."""
    event: int = 0
    """Position of its event among those of the recording, from 0."""


def sample_time(head: bytes, event: Attributes, byteorder: ByteOrder) -> int:
    """Return the time of a sample without decoding the rest; 0: it has none.

    :param head: the beginning of its body; see :meth:`sframe_unwind.perf.records.Record.head`.
    """
    kind = event.sample_type
    if not kind & SampleType.TIME:
        return 0
    at = 8 * sum(bool(kind & bit) for bit in (SampleType.IDENTIFIER, SampleType.IP, SampleType.TID))
    return int.from_bytes(head[at : at + 8], byteorder)


_ID_FIELDS = (
    *(SampleType.TID, SampleType.TIME, SampleType.ID, SampleType.STREAM_ID, SampleType.CPU, SampleType.IDENTIFIER),
)
"""The fields of a ``sample_id``, of 8 bytes each, in their order."""


def id_time(body: bytes, event: Attributes, byteorder: ByteOrder) -> int:
    """Return the time in the ``sample_id`` at the end of a record that is not a sample; 0: it has none."""
    return int.from_bytes(_id_field(body, event, SampleType.TIME), byteorder)


def id_thread(body: bytes, event: Attributes, byteorder: ByteOrder) -> int:
    """Return the id of the thread in the ``sample_id``; 0: it has none."""
    return int.from_bytes(_id_field(body, event, SampleType.TID)[4:], byteorder)  # after that of the process


def _id_field(body: bytes, event: Attributes, field: SampleType) -> bytes:
    """Return a field of the ``sample_id`` at the end of a record; none: it does not have it."""
    kind = event.sample_type
    if not (event.sample_id_all and kind & field):
        return b""
    at = len(body) - 8 * sum(bool(kind & bit) for bit in _ID_FIELDS[_ID_FIELDS.index(field) :])
    return body[at : at + 8] if at >= 0 else b""


def read_sample(cursor: Cursor, event: Attributes) -> Sample:
    """Decode the body of a sample up to the user stack, in the order of ``perf_output_sample`` of the kernel.

    :raises FormatError: a field is beyond the end of the record.
    """
    kind = event.sample_type
    fields = _first_fields(kind)
    first = dict(zip(fields, cursor.words(len(fields))))
    thread = first.get(SampleType.TID, 0)
    halves = thread & 0xFFFFFFFF, thread >> 32
    pid, tid = halves if cursor.byteorder == "little" else halves[::-1]
    abi = 0
    callchain: tuple[int, ...] = ()
    registers: dict[int, int] = {}
    stack, is_cut = b"", False
    if kind & SampleType.READ:
        _skip_values(cursor, event.read_format)
    if kind & SampleType.CALLCHAIN:
        callchain = cursor.words(cursor.u64())
    if kind & SampleType.RAW:
        cursor.take(cursor.u32())
    if kind & SampleType.BRANCH_STACK:
        count = cursor.u64()
        cursor.skip(bool(event.branch_sample_type & BRANCH_HW_INDEX))
        cursor.take(BRANCH_ENTRY_SIZE * count)
        cursor.skip(count * bool(event.branch_sample_type & BRANCH_COUNTERS))
    if kind & SampleType.REGS_USER:
        abi = cursor.u64()
        if abi:
            numbers = _bits(event.regs_user)
            registers = dict(zip(numbers, cursor.words(len(numbers))))
    if kind & SampleType.STACK_USER:
        size = cursor.u64()
        stack = cursor.take(size)
        if size:
            written = cursor.u64()
            stack, is_cut = stack[:written], written >= size
    return Sample(
        pid=pid,
        tid=tid,
        time=first.get(SampleType.TIME, 0),
        ip=first.get(SampleType.IP, 0),
        callchain=callchain,
        abi=abi,
        registers=registers,
        stack=stack,
        stack_is_cut=is_cut,
        event=event.number,
    )


_FIRST_FIELDS = (
    *(SampleType.IDENTIFIER, SampleType.IP, SampleType.TID, SampleType.TIME, SampleType.ADDR),
    *(SampleType.ID, SampleType.STREAM_ID, SampleType.CPU, SampleType.PERIOD),
)
"""The fields of 8 bytes each at the start of a sample, in their order."""


@cache
def _first_fields(kind: int) -> tuple[SampleType, ...]:
    """Return those of the first fields that samples of a type have."""
    return tuple(field for field in _FIRST_FIELDS if kind & field)


@cache
def _bits(mask: int) -> tuple[int, ...]:
    return tuple(number for number in range(64) if mask >> number & 1)


def _skip_values(cursor: Cursor, read_format: int) -> None:
    """Skip PERF_SAMPLE_READ: the value of a counter, or of each counter in its group."""
    times = (ReadFormat.TOTAL_TIME_ENABLED, ReadFormat.TOTAL_TIME_RUNNING)
    each = 1 + bool(read_format & ReadFormat.ID) + bool(read_format & ReadFormat.LOST)
    if read_format & ReadFormat.GROUP:
        count = cursor.u64()
        each *= count
    cursor.skip(each + sum(bool(read_format & bit) for bit in times))
