"""Tells why no sample of a recording can be unwound, and how to record instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum

from sframe_unwind.perf.constants import SampleType

_NEEDED = SampleType.REGS_USER | SampleType.STACK_USER


class Unusable(Enum):
    """Why a sample cannot be unwound.  The value completes "N samples are not unwound:"."""

    OF_32_BIT = "of 32-bit processes"
    WITHOUT_REGISTERS = "without user registers"
    """The recording has none, or the sample is from a kernel thread."""
    WITHOUT_POINTERS = "without pc, SP and frame pointer"
    WITHOUT_STACK = "without a copy of the user stack"


_RECORD = {
    Unusable.OF_32_BIT: "the samples are of 32-bit processes, for which SFrame has no ABI: record 64-bit ones",
    Unusable.WITHOUT_REGISTERS: "the samples are of kernel threads: record a process that runs in user mode",
    Unusable.WITHOUT_POINTERS: "the samples lack pc, SP or frame pointer: record them without --user-regs",
    Unusable.WITHOUT_STACK: "the samples have empty copies of the stack: record larger ones (--call-graph dwarf,N)",
}


def why_none(sample_types: Sequence[int], unusable: Counter[Unusable]) -> str:
    """Return why no sample can be unwound, and how to record instead.

    :param sample_types: the fields of the samples of each event, as bits of :class:`SampleType`.
    :param unusable: the samples by reason; empty: there are none.
    """
    if sample_types and not any(kind & _NEEDED == _NEEDED for kind in sample_types):
        return "the samples have no copies of the user stack: record them with perf record --call-graph dwarf"
    if not unusable:
        return "there are no samples: record a longer run, or more of them (perf record -F)"
    (reason, _), *_ = unusable.most_common(1)
    return _RECORD[reason]
