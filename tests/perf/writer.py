"""Writes recordings like perf: for any machine, to a file or a pipe.

The layout is written here a second time, from ``include/uapi/linux/perf_event.h`` and perf's
``Documentation/perf.data-file-format.txt``, so that an error of the reader does not hide itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sframe_unwind.address import ByteOrder

IDENTIFIER, IP, TID, TIME, ID, CALLCHAIN = 1 << 16, 1 << 0, 1 << 1, 1 << 2, 1 << 6, 1 << 5
REGS_USER, STACK_USER = 1 << 12, 1 << 13
USUAL = IP | TID | TIME | CALLCHAIN | REGS_USER | STACK_USER
ARCH, BUILD_ID, EVENT_DESC = 6, 2, 12


class Event(NamedTuple):
    """An event of the recording."""

    sample_type: int = USUAL
    regs_user: int = 0
    ids: tuple[int, ...] = ()
    read_format: int = 0
    user_chain: bool = False
    """The kernel unwinds user stacks, too."""
    name: str = ""
    """Written in the feature with the descriptions of events; in a pipe, in a record of its own.  Empty: in neither."""


class Writer:
    """Collects records, and lays a recording out.

    :param byteorder: ``"little"`` or ``"big"``.
    :param machine: the output of ``uname -m``.
    """

    def __init__(self, byteorder: ByteOrder, machine: str, events: Sequence[Event]) -> None:
        self._mark = "<" if byteorder == "little" else ">"
        self._is_big = byteorder == "big"
        self._machine = machine
        self._events = events
        self._records: list[bytes] = []
        self._build_ids: list[bytes] = []
        self._host: dict[int, str] = {}

    def pack(self, fields: str, *values: int) -> bytes:
        return struct.pack(self._mark + fields, *values)

    def record(self, kind: int, misc: int, body: bytes) -> bytes:
        return self.pack("IHH", kind, misc, 8 + len(body)) + body

    def add(self, kind: int, misc: int, body: bytes) -> None:
        self._records.append(self.record(kind, misc, body))

    def _id(self, pid: int, time: int) -> bytes:
        """Return the ``sample_id``: its fields for the first event."""
        kind, body = self._events[0].sample_type, b""
        if kind & TID:
            body += self.pack("II", pid, pid)
        if kind & TIME:
            body += self.pack("Q", time)
        if kind & ID:
            body += self.pack("Q", self._events[0].ids[0])
        if kind & IDENTIFIER:
            body += self.pack("Q", self._events[0].ids[0])
        return body

    def _text(self, name: str) -> bytes:
        raw = name.encode() + b"\0"
        return raw + bytes(-len(raw) % 8)

    def comm(self, pid: int, name: str, time: int = 0, tid: int = 0, is_exec: bool = False) -> None:
        body = self.pack("II", pid, tid or pid) + self._text(name) + self._id(pid, time)
        self.add(3, 2 | (0x2000 if is_exec else 0), body)

    def fork(self, pid: int, parent: int, time: int, tid: int = 0) -> None:
        self.add(7, 0, self.pack("IIIIQ", pid, parent, tid or pid, parent, time) + self._id(pid, time))

    def exit(self, pid: int, time: int) -> None:
        self.add(4, 0, self.pack("IIIIQ", pid, pid, pid, pid, time) + self._id(pid, time))

    def mmap(self, pid: int, start: int, size: int, offset: int, path: str, time: int = 0) -> None:
        """Add the older record, without protection and build ID."""
        self.add(1, 2, self.pack("IIQQQ", pid, pid, start, size, offset) + self._text(path) + self._id(pid, time))

    def mmap2(
        self, pid: int, start: int, size: int, offset: int, path: str, build_id: str = "", time: int = 0, prot: int = 5
    ) -> None:
        raw = bytes.fromhex(build_id)
        place = bytes([len(raw), 0, 0, 0]) + raw.ljust(20, b"\0") if raw else self.pack("IIQQ", 8, 1, 77, 0)
        body = self.pack("IIQQQ", pid, pid, start, size, offset) + place + self.pack("II", prot, 2)
        self.add(10, 2 | (0x4000 if raw else 0), body + self._text(path) + self._id(pid, time))

    def host(self, name: str, release: str) -> None:
        """Set the name of the machine and the release of its kernel; only recordings through a pipe have them."""
        self._host = {3: name, 4: release}

    def deferred(self, pid: int, cookie: int, chain: Sequence[int], time: int) -> None:
        """Add a PERF_RECORD_CALLCHAIN_DEFERRED."""
        self.add(22, 2, self.pack(f"QQ{len(chain)}Q", cookie, len(chain), *chain) + self._id(pid, time))

    def build_id(self, path: str, build_id: str) -> None:
        raw = bytes.fromhex(build_id)
        field = raw.ljust(20, b"\0") + bytes([len(raw), 0, 0, 0])
        self._build_ids.append(self.record(67, 2 | 0x8000, self.pack("i", -1) + field + self._text(path)))

    def sample(
        self,
        pid: int,
        ip: int,
        registers: Mapping[int, int],
        stack: bytes,
        size: int = 0,
        time: int = 0,
        tid: int = 0,
        event: int = 0,
        callchain: Sequence[int] = (),
        abi: int = 2,
    ) -> None:
        """Add a sample.

        :param registers: the registers by the kernel's numbers; none: a sample of a kernel thread.
        :param abi: ``PERF_SAMPLE_REGS_ABI_...`` of a sample with registers.
        :param size: number of requested bytes of stack; more than the stack has: the stack ended.
        """
        kind, regs_user, ids, *_ = self._events[event]
        body = b""
        if kind & IDENTIFIER:
            body += self.pack("Q", ids[0])
        if kind & IP:
            body += self.pack("Q", ip)
        if kind & TID:
            body += self.pack("II", pid, tid or pid)
        if kind & TIME:
            body += self.pack("Q", time)
        if kind & ID:
            body += self.pack("Q", ids[0])
        if kind & CALLCHAIN:
            body += self.pack(f"Q{len(callchain)}Q", len(callchain), *callchain)
        if kind & REGS_USER:
            numbers = [number for number in range(64) if regs_user >> number & 1]
            values = [registers.get(number, 0) for number in numbers]
            body += self.pack(f"Q{len(values)}Q", abi, *values) if registers else self.pack("Q", 0)
        if kind & STACK_USER:
            size = max(size, len(stack))
            body += self.pack("Q", size) + stack.ljust(size, b"\0") + (self.pack("Q", len(stack)) if size else b"")
        self.add(9, 2, body)

    def _attributes(self, event: Event) -> bytes:
        numbers = (8, 9, 13, 18, 23) if event.user_chain else (8, 9, 13, 18, 22, 23)
        bits = sum(1 << (63 - bit if self._is_big else bit) for bit in numbers)
        fields = (1, 112, 0, 499, event.sample_type, event.read_format, bits, 0, 0, 0, 0, 0)
        return self.pack("IIQQQQQIIQQQ", *fields) + self.pack("QIi", event.regs_user, 4096, 0) + bytes(16)

    def _text_feature(self, text: str) -> bytes:
        raw = self._text(text)
        return self.pack("I", len(raw)) + raw

    def _descriptions(self) -> bytes:
        """Return the feature with the names of the events."""
        body = self.pack("II", len(self._events), len(self._attributes(self._events[0])))
        for event in self._events:
            name = self._text(event.name)
            body += self._attributes(event) + self.pack("II", len(event.ids), len(name)) + name
            body += self.pack(f"{len(event.ids)}Q", *event.ids)
        return body

    def pipe(self) -> bytes:
        """Return the recording in the form for a pipe."""
        attributes = [
            self.record(64, 0, self._attributes(event) + self.pack(f"{len(event.ids)}Q", *event.ids))
            for event in self._events
        ]
        attributes += [
            self.record(78, 0, self.pack("QQ", 2, event.ids[0]) + self._text(event.name))
            for event in self._events
            if event.name
        ]
        texts = {**self._host, ARCH: self._machine}
        attributes += [
            self.record(80, 0, self.pack("Q", number) + self._text_feature(text)) for number, text in texts.items()
        ]
        magic = self.pack("Q", int.from_bytes(b"PERFILE2", "little"))
        return magic + self.pack("Q", 16) + b"".join([*attributes, *self._records, *self._build_ids])

    def file(self) -> bytes:
        """Return the recording as a file."""
        ids, entries, at = b"", b"", 104
        for event in self._events:
            raw = self.pack(f"{len(event.ids)}Q", *event.ids)
            entries += self._attributes(event) + self.pack("QQ", at + len(ids), len(raw))
            ids += raw
        start = at + len(ids) + len(entries)
        records = b"".join(self._records)
        features = [(BUILD_ID, b"".join(self._build_ids))] if self._build_ids else []
        features.append((ARCH, self._text_feature(self._machine)))
        if any(event.name for event in self._events):
            features.append((EVENT_DESC, self._descriptions()))
        table, contents, place = b"", b"", start + len(records) + 16 * len(features)
        for _, raw in features:
            table += self.pack("QQ", place + len(contents), len(raw))
            contents += raw
        header = self.pack("QQQ", int.from_bytes(b"PERFILE2", "little"), 104, 128)
        header += self.pack("QQQQQQ", at + len(ids), len(entries), start, len(records), 0, 0)
        header += self.pack("QQQQ", sum(1 << number for number, _ in features), 0, 0, 0)
        return header + ids + entries + records + table + contents
