"""A recording: its machine, its events, and its records in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from sframe_unwind.elf.reader import PathLike
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.perf.attributes import Events, read_attributes
from sframe_unwind.perf.callchain import read_deferred, user_chain
from sframe_unwind.perf.constants import USER_TYPE_START, Feature, RecordType
from sframe_unwind.perf.cursor import Cursor
from sframe_unwind.perf.event_names import UPDATE_NAME, read_descriptions
from sframe_unwind.perf.features import FileBuildId, read_build_id, read_build_ids, read_text
from sframe_unwind.perf.header import FileSection, read_header
from sframe_unwind.perf.mappings import Mapping, read_mmap, read_mmap2
from sframe_unwind.perf.records import Record, read_records
from sframe_unwind.perf.sample import Sample, id_thread, id_time, read_sample, sample_time
from sframe_unwind.perf.source import open_sources
from sframe_unwind.perf.tasks import Comm, Exit, Fork, read_comm, read_exit, read_fork

Event = Union[Mapping, Comm, Fork, Exit, Sample]


_IN_PLACE_OF_HEADER = (
    *(RecordType.HEADER_ATTR, RecordType.HEADER_FEATURE, RecordType.HEADER_BUILD_ID, RecordType.EVENT_UPDATE),
)


class _Timed(NamedTuple):
    time: int
    number: int
    """Position in the file, which orders records of equal time."""
    event: Mapping | Comm | Fork | Exit | None
    """``None``: a sample, which is decoded when it is needed."""
    record: Record


class Recording:
    """A recording of ``perf record``: a file, or the folder that ``--threads`` writes.

    :raises FileError: the file cannot be read.
    :raises FormatError: it is not a recording, or it is malformed.
    :raises DecompressionError: records are compressed, and nothing here decompresses them.
    """

    def __init__(self, path: PathLike) -> None:
        self._events = Events()
        self.machine = ""
        """The output of ``uname -m`` on the recorded machine; empty: not known."""
        self._host: dict[int, str] = {}
        self.build_ids: dict[str, str] = {}
        """Build ID (hexadecimal digits) of each file by its path, for files that the recording lists."""
        self.truncated = ""
        """How far a truncated file goes; empty: it is whole."""
        source, others = open_sources(path)
        header = read_header(source)
        self.byteorder = header.byteorder
        if header.missing:
            size = header.records.size
            self.truncated = f"truncated after {size:,} of {size + header.missing:,} bytes of records"
        for event in header.attributes:
            self._events.add(event)
        for number, place in header.features:
            if number in tuple(Feature):
                self._take_feature(number, source.read(place.offset, place.size, "a feature"), place.offset)
        self._deferred: dict[int, dict[int, tuple[int, ...]]] = {}
        """The user stacks that the kernel unwound later, by thread and cookie."""
        timed = []
        places = [(source, header.records), *((other, FileSection(0, other.size)) for other in others)]
        records = (
            record for each, place in places for record in read_records(each, place, self.byteorder, self._ends_within)
        )
        for number, record in enumerate(records):
            found = self._timed(number, record)
            if found is not None:
                timed.append(found)
        self._timed_records = sorted(timed)

    def _ends_within(self, offset: int) -> None:
        self.truncated = self.truncated or f"ends within the record at offset {offset:#x}"

    @property
    def sample_types(self) -> tuple[int, ...]:
        """The fields of the samples of each event, as bits of :class:`sframe_unwind.perf.constants.SampleType`."""
        return tuple(event.sample_type for event in self._events.all)

    @property
    def has_user_chains(self) -> bool:
        """Whether the kernel has unwound user stacks for the recording."""
        return bool(self._deferred) or any(event.user_callchain for event in self._events.all)

    def is_of(self, host: str, release: str) -> bool:
        """Return whether the recording is of a machine with this name, and of a kernel with this release."""
        return (self._host.get(Feature.HOSTNAME), self._host.get(Feature.OSRELEASE)) == (host, release)

    @property
    def event_names(self) -> tuple[str, ...]:
        """The names of the events, in the order of the file."""
        return self._events.names

    def __iter__(self) -> Iterator[Event]:
        """Yield mappings, tasks and samples in the order of time.

        :raises FormatError: a sample is malformed.
        """
        for _, _, event, record in self._timed_records:
            if event is not None:
                yield event
                continue
            body = record.body()
            attributes = self._events.of_sample(body, self.byteorder)
            sample = read_sample(Cursor(body, self.byteorder, "a sample", record.offset), attributes)
            if sample.callchain:
                chain = user_chain(sample.callchain, self._deferred.get(sample.tid, {}))
                sample = sample._replace(user_chain=chain)
            yield sample

    def _timed(self, number: int, record: Record) -> _Timed | None:
        """Return a record with its time; ``None``: it does not concern stacks."""
        if record.kind >= USER_TYPE_START:
            self._take_header_record(record)
            return None
        if record.kind == RecordType.SAMPLE:
            head = record.head()
            attributes = self._events.of_sample(head, self.byteorder)
            return _Timed(sample_time(head, attributes, self.byteorder), number, None, record)
        if record.kind == RecordType.CALLCHAIN_DEFERRED:
            self._take_deferred(record)
            return None
        event = self._decoded(record)
        if event is None:
            return None
        time = id_time(record.body(), self._events.of_other(), self.byteorder)
        return _Timed(time, number, event, record)

    def _take_deferred(self, record: Record) -> None:
        body = record.body()
        deferred = read_deferred(Cursor(body, self.byteorder, "PERF_RECORD_CALLCHAIN_DEFERRED", record.offset))
        thread = id_thread(body, self._events.of_other(), self.byteorder)
        self._deferred.setdefault(thread, {})[deferred.cookie] = deferred.chain

    def _decoded(self, record: Record) -> Mapping | Comm | Fork | Exit | None:
        kind, misc = record.kind, record.misc
        if kind not in (RecordType.MMAP, RecordType.MMAP2, RecordType.COMM, RecordType.FORK, RecordType.EXIT):
            return None
        cursor = Cursor(record.body(), self.byteorder, f"PERF_RECORD_{RecordType(kind).name}", record.offset)
        if kind == RecordType.MMAP:
            return read_mmap(cursor, misc)
        if kind == RecordType.MMAP2:
            return read_mmap2(cursor, misc)
        if kind == RecordType.COMM:
            return read_comm(cursor, misc)
        return read_fork(cursor) if kind == RecordType.FORK else read_exit(cursor)

    def _take_header_record(self, record: Record) -> None:
        """Read the data that a recording through a pipe has in records instead of its header."""
        if record.kind not in _IN_PLACE_OF_HEADER:
            return
        cursor = Cursor(record.body(), self.byteorder, f"record of type {record.kind}", record.offset)
        if record.kind == RecordType.HEADER_ATTR:
            attributes = read_attributes(cursor, self.byteorder)
            self._events.add(attributes._replace(ids=cursor.words(cursor.left // 8)))
        elif record.kind == RecordType.HEADER_FEATURE:
            number = cursor.u64()
            self._take_feature(number, cursor.take(cursor.left), record.offset + 8)
        elif record.kind == RecordType.EVENT_UPDATE:
            update, ident = cursor.u64(), cursor.u64()
            if update == UPDATE_NAME:
                self._events.set_name_by_id(ident, cursor.text())
        else:
            self._take_build_id(read_build_id(cursor, record.misc))

    def _take_feature(self, number: int, data: bytes, offset: int) -> None:
        cursor = Cursor(data, self.byteorder, "a feature", offset)
        if number == Feature.ARCH:
            self.machine = read_text(cursor)
        elif number in (Feature.HOSTNAME, Feature.OSRELEASE):
            self._host[number] = read_text(cursor)
        elif number == Feature.EVENT_DESC:
            for event, name in enumerate(read_descriptions(cursor)):
                self._events.set_name(event, name)
        elif number == Feature.BUILD_ID:
            for found in read_build_ids(cursor):
                self._take_build_id(found)

    def _take_build_id(self, found: FileBuildId) -> None:
        if found.is_user and found.build_id.strip("0"):
            self.build_ids[found.path] = found.build_id
