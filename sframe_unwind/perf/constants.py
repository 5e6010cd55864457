"""Numbers of the format, with the names of the kernel's headers minus their prefixes."""

from __future__ import annotations

from enum import IntEnum

SECTION = "perf.data"
"""The name of the file in error messages."""


class RecordType(IntEnum):
    """``PERF_RECORD_...``: those from 64 on are perf's own (``tools/lib/perf/include/perf/event.h``)."""

    MMAP = 1
    COMM = 3
    EXIT = 4
    FORK = 7
    SAMPLE = 9
    MMAP2 = 10
    CALLCHAIN_DEFERRED = 22
    HEADER_ATTR = 64
    HEADER_TRACING_DATA = 66
    HEADER_BUILD_ID = 67
    AUXTRACE = 71
    EVENT_UPDATE = 78
    HEADER_FEATURE = 80
    COMPRESSED = 81
    COMPRESSED2 = 83


USER_TYPE_START = 64
"""``PERF_RECORD_USER_TYPE_START``: records from here on have no ``sample_id``."""

CPUMODE_MASK = 7
CPUMODE_USER = 2
MISC_MMAP_DATA = 1 << 13
MISC_COMM_EXEC = 1 << 13
MISC_MMAP_BUILD_ID = 1 << 14
MISC_BUILD_ID_SIZE = 1 << 15


class SampleType(IntEnum):
    """``PERF_SAMPLE_...``: the fields of a sample, a bit each.  An ``IntFlag`` is tested ten times as slowly."""

    IP = 1 << 0
    TID = 1 << 1
    TIME = 1 << 2
    ADDR = 1 << 3
    READ = 1 << 4
    CALLCHAIN = 1 << 5
    ID = 1 << 6
    CPU = 1 << 7
    PERIOD = 1 << 8
    STREAM_ID = 1 << 9
    RAW = 1 << 10
    BRANCH_STACK = 1 << 11
    REGS_USER = 1 << 12
    STACK_USER = 1 << 13
    IDENTIFIER = 1 << 16


class ReadFormat(IntEnum):
    """``PERF_FORMAT_...``: the fields of a counter's value, a bit each."""

    TOTAL_TIME_ENABLED = 1 << 0
    TOTAL_TIME_RUNNING = 1 << 1
    ID = 1 << 2
    GROUP = 1 << 3
    LOST = 1 << 4


BRANCH_HW_INDEX = 1 << 17
BRANCH_COUNTERS = 1 << 19
"""``PERF_SAMPLE_BRANCH_HW_INDEX`` and ``..._COUNTERS``: one word more, and one word more for each branch."""
BRANCH_ENTRY_SIZE = 24
"""Size of ``struct perf_branch_entry`` in bytes."""

CONTEXT_USER = (1 << 64) - 512
CONTEXT_USER_DEFERRED = (1 << 64) - 640
"""``PERF_CONTEXT_...``: markers in chains.  A cookie follows the second one."""
FIRST_CONTEXT = (1 << 64) - 4095
"""``PERF_CONTEXT_MAX``: larger values in chains are markers."""
EXCLUDE_CALLCHAIN_USER_BIT = 22
SAMPLE_ID_ALL_BIT = 18
"""Number of the bit field ``sample_id_all`` of ``struct perf_event_attr``, counted from the first."""


class Feature(IntEnum):
    """``HEADER_...``: the sections after the records (``tools/perf/util/header.h``)."""

    BUILD_ID = 2
    HOSTNAME = 3
    OSRELEASE = 4
    ARCH = 6
    EVENT_DESC = 12


REGS_ABI_32 = 1
REGS_ABI_64 = 2
