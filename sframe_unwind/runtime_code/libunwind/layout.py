"""The memory layout of libunwind's structures (``libunwind-dynamic.h``) in 64-bit processes."""

from __future__ import annotations

import struct
from enum import IntEnum

from sframe_unwind.address import ByteOrder
from sframe_unwind.memory import STRUCT_MARKS
from sframe_unwind.named_tuple import NamedTuple


class Format(IntEnum):
    """``unw_dyn_info_format_t``: the format of the unwind info of an entry."""

    DYNAMIC = 0
    TABLE = 1
    REMOTE_TABLE = 2


class Tag(IntEnum):
    """``unw_dyn_operation_t``: the operation of a directive."""

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
    """The layouts in one byte order.  Pointers and ``unw_word_t`` have 8 bytes in all supported ABIs.

    :param byteorder: ``"little"`` or ``"big"``.
    """

    def __init__(self, byteorder: ByteOrder) -> None:
        mark = STRUCT_MARKS[byteorder]
        self.head = struct.Struct(mark + "IIQ")
        """``unw_dyn_info_list_t``: version, generation, first."""
        self.links = struct.Struct(mark + "QQQQ")
        """The first fields of ``unw_dyn_info_t``: next, prev, start_ip, end_ip."""
        self.entry = struct.Struct(mark + "16xQQ8xi4xQ32s")
        """``unw_dyn_info_t``: start_ip, end_ip, format, load_offset, and the union."""
        self.procedure = struct.Struct(mark + "Q8xI4xQ")
        """``unw_dyn_proc_info_t``: name_ptr, flags, regions."""
        self.table = struct.Struct(mark + "QQQQ")
        """``unw_dyn_table_info_t`` and ``unw_dyn_remote_table_info_t``: name_ptr, segbase, table_len, table_data."""
        self.region = struct.Struct(mark + "QiI")
        """``unw_dyn_region_info_t``: next, insn_count, op_count.  The directives follow."""
        self.directive = struct.Struct(mark + "bxhiq")
        """``unw_dyn_op_t``: tag, reg, when, val.  The field ``qp`` is skipped: it is for predicated instructions, which
        none of the supported architectures has."""


class Entry(NamedTuple):
    """``unw_dyn_info_t``, without its links."""

    address: int
    """Address of the structure."""
    start: int
    """Address of the first byte of the code."""
    end: int
    """End address of the code (exclusive)."""
    format: int
    load_offset: int
    union: bytes
    """The bytes of the union, which has a member for each format."""
