"""libunwind's structures of 64-bit processes as they lie in memory (``libunwind-dynamic.h``)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from sframe_unwind.memory import STRUCT_MARKS


class Format(IntEnum):
    """``unw_dyn_info_format_t``: what an entry's unwind info is."""

    DYNAMIC = 0
    TABLE = 1
    REMOTE_TABLE = 2


class Tag(IntEnum):
    """``unw_dyn_operation_t``: what a directive says."""

    STOP = 0
    SAVE_REG = 1
    SPILL_FP_REL = 2
    SPILL_SP_REL = 3
    ADD = 4
    POP_FRAMES = 5
    LABEL_STATE = 6
    COPY_STATE = 7
    ALIAS = 8


class Structures:
    """The layouts in one byte order; pointers and ``unw_word_t`` have 8 bytes on every ABI here.

    :param byteorder: ``"little"`` or ``"big"``.
    """

    def __init__(self, byteorder: str) -> None:
        mark = STRUCT_MARKS[byteorder]
        self.head = struct.Struct(mark + "IIQ")
        """``unw_dyn_info_list_t``: version, generation, first."""
        self.links = struct.Struct(mark + "QQQQ")
        """``unw_dyn_info_t``, its beginning: next, prev, start_ip, end_ip."""
        self.entry = struct.Struct(mark + "16xQQ8xi4xQ32s")
        """``unw_dyn_info_t``: start_ip, end_ip, format, load_offset, the union."""
        self.procedure = struct.Struct(mark + "Q8xI4xQ")
        """``unw_dyn_proc_info_t``: name_ptr, flags, regions."""
        self.table = struct.Struct(mark + "QQQQ")
        """``unw_dyn_table_info_t`` and the remote one: name_ptr, segbase, table_len, table_data."""
        self.region = struct.Struct(mark + "QiI")
        """``unw_dyn_region_info_t``: next, insn_count, op_count; the directives follow."""
        self.directive = struct.Struct(mark + "bxhiq")
        """``unw_dyn_op_t``: tag, reg, when, val.  The predicate is skipped: no ABI here predicates instructions."""


class Entry(NamedTuple):
    """``unw_dyn_info_t``, without its links."""

    address: int
    """Of the structure."""
    start: int
    end: int
    format: int
    load_offset: int
    union: bytes
    """The part whose meaning depends on the format."""
