"""Decodes ``struct perf_event_attr``: what an event records in its samples."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError
from sframe_unwind.perf.constants import SAMPLE_ID_ALL_BIT, SECTION, SampleType
from sframe_unwind.perf.cursor import Cursor

SMALLEST = 64
"""``PERF_ATTR_SIZE_VER0``, in bytes."""


class Attributes(NamedTuple):
    """The attributes of one event that determine the format of its records."""

    sample_type: int
    """Bits of :class:`SampleType`."""
    read_format: int
    """Bits of :class:`sframe_unwind.perf.constants.ReadFormat`."""
    sample_id_all: bool
    """Records other than samples end with a ``sample_id``."""
    branch_sample_type: int
    regs_user: int
    """Bit mask of the user registers in a sample, by the kernel's numbers (``asm/perf_regs.h``)."""
    ids: tuple[int, ...] = ()
    """The ids by which samples name the event."""


def read_attributes(cursor: Cursor, byteorder: ByteOrder) -> Attributes:
    """Read a ``struct perf_event_attr``, whose size is in its second field.

    Fields after its end are 0: older kernels have fewer fields.

    :raises FormatError: it is too short.
    """
    start = cursor.offset
    cursor.take(4)
    size = cursor.u32()
    if size < SMALLEST:
        raise FormatError(f"size of perf_event_attr is {size}, expected at least {SMALLEST}", start, SECTION)
    rest = Cursor(cursor.take(size - 8).ljust(104, b"\0"), byteorder, "perf_event_attr", start + 8)
    rest.skip(2)  # config, sample_period
    sample_type, read_format, flags = rest.u64(), rest.u64(), rest.u64()
    rest.skip(3)  # wakeup_events and bp_type, config1, config2
    branch_sample_type, regs_user = rest.u64(), rest.u64()
    # A compiler for a big-endian machine puts the first bit field into the most significant bit.
    bit = 63 - SAMPLE_ID_ALL_BIT if byteorder == "big" else SAMPLE_ID_ALL_BIT
    return Attributes(sample_type, read_format, bool(flags >> bit & 1), branch_sample_type, regs_user)


class Events:
    """The events of a recording.  A record belongs to one of them, which its id names."""

    def __init__(self) -> None:
        self._all: list[Attributes] = []
        self._by_id: dict[int, Attributes] = {}

    def add(self, attributes: Attributes) -> None:
        """Add an event."""
        self._all.append(attributes)
        self._by_id.update(dict.fromkeys(attributes.ids, attributes))

    @property
    def all(self) -> tuple[Attributes, ...]:
        """The events, in the order of the file."""
        return tuple(self._all)

    def of_sample(self, head: bytes, byteorder: ByteOrder) -> Attributes:
        """Return the event of a sample.

        The position of the id is the same in all events: perf requires it, or PERF_SAMPLE_IDENTIFIER
        (``evlist__valid_sample_type`` of perf).

        :param head: the beginning of its body; see :meth:`sframe_unwind.perf.records.Record.head`.
        :raises FormatError: the recording has no event, or none with this id.
        """
        first = self._first()
        if len(self._all) == 1:
            return first
        kind, at = first.sample_type, 0
        if not kind & SampleType.IDENTIFIER:
            if not kind & SampleType.ID:
                return first
            before = (SampleType.IP, SampleType.TID, SampleType.TIME, SampleType.ADDR)
            at = 8 * sum(bool(kind & bit) for bit in before)
        return self._of_id(int.from_bytes(head[at : at + 8], byteorder))

    def of_other(self) -> Attributes:
        """Return an event whose ``sample_id`` has the same fields as that of any record that is not a sample.

        :raises FormatError: the recording has no event.
        """
        return self._first()

    def _first(self) -> Attributes:
        if not self._all:
            raise FormatError("a record before the attributes of any event", None, SECTION)
        return self._all[0]

    def _of_id(self, number: int) -> Attributes:
        found = self._by_id.get(number)
        if found is None and number:
            raise FormatError(f"a sample of event {number}, which the attributes do not have", None, SECTION)
        return found or self._first()
