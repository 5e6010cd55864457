"""Decodes ``struct perf_event_attr``: what an event records in its samples."""

from __future__ import annotations

from sframe_unwind.address import ByteOrder
from sframe_unwind.errors import FormatError
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.constants import EXCLUDE_CALLCHAIN_USER_BIT, SAMPLE_ID_ALL_BIT, SECTION, SampleType
from sframe_unwind.perf.cursor import Cursor
from sframe_unwind.perf.event_names import usual_name

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
    user_callchain: bool = False
    """Samples have the user stack as the kernel unwound it."""
    kind: int = 0
    """``type``: hardware, software and others."""
    config: int = 0
    """``config``: the number of the event within its type."""
    ids: tuple[int, ...] = ()
    """The ids by which samples name the event."""
    number: int = 0
    """Position among the events of the recording, from 0."""


def read_attributes(cursor: Cursor, byteorder: ByteOrder) -> Attributes:
    """Read a ``struct perf_event_attr``, whose size is in its second field.

    Fields after its end are 0: older kernels have fewer fields.

    :raises FormatError: it is too short.
    """
    start = cursor.offset
    kind, size = cursor.u32(), cursor.u32()
    if size < SMALLEST:
        raise FormatError(f"size of perf_event_attr is {size}, expected at least {SMALLEST}", start, SECTION)
    rest = Cursor(cursor.take(size - 8).ljust(104, b"\0"), byteorder, "perf_event_attr", start + 8)
    config = rest.u64()
    rest.skip(1)  # sample_period
    sample_type, read_format, flags = rest.u64(), rest.u64(), rest.u64()
    rest.skip(3)  # wakeup_events and bp_type, config1, config2
    branch_sample_type, regs_user = rest.u64(), rest.u64()
    # A compiler for a big-endian machine puts the first bit field into the most significant bit.
    id_all, no_chain = (
        bool(flags >> (63 - bit if byteorder == "big" else bit) & 1)
        for bit in (SAMPLE_ID_ALL_BIT, EXCLUDE_CALLCHAIN_USER_BIT)
    )
    has_chain = bool(sample_type & SampleType.CALLCHAIN) and not no_chain
    return Attributes(
        sample_type=sample_type,
        read_format=read_format,
        sample_id_all=id_all,
        branch_sample_type=branch_sample_type,
        regs_user=regs_user,
        user_callchain=has_chain,
        kind=kind,
        config=config,
    )


class Events:
    """The events of a recording.  A record belongs to one of them, which its id names."""

    def __init__(self) -> None:
        self._all: list[Attributes] = []
        self._by_id: dict[int, Attributes] = {}
        self._names: dict[int, str] = {}

    def add(self, attributes: Attributes) -> None:
        """Add an event."""
        numbered = attributes._replace(number=len(self._all))
        self._all.append(numbered)
        self._by_id.update(dict.fromkeys(numbered.ids, numbered))

    def set_name(self, number: int, name: str) -> None:
        """Set the name of an event."""
        self._names[number] = name

    def set_name_by_id(self, ident: int, name: str) -> None:
        """Set the name of the event with an id, if there is one."""
        if ident in self._by_id:
            self._names[self._by_id[ident].number] = name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the events, in the order of the file."""
        return tuple(self._names.get(one.number) or usual_name(one.kind, one.config, one.number) for one in self._all)

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
