"""Makes an SFrame section from the DWARF CFI of a loaded module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import CfiRules
from sframe_unwind.cfi.section import CfiSection
from sframe_unwind.errors import FormatError
from sframe_unwind.sframe import encode
from sframe_unwind.sframe.constants import NEWEST
from sframe_unwind.sframe.listing import listed_functions
from sframe_unwind.sframe.section import Section
from sframe_unwind.translation.description import Description, of_cfi, of_sframe
from sframe_unwind.translation.proof import prove
from sframe_unwind.translation.to_sframe import Target, make_table


def generate(cfi: CfiSection, ranges: Sequence[tuple[int, int]], arch: Arch) -> bytes:
    """Return a section at the address of the CFI.  Its functions count from there, wherever the module is loaded.

    Functions that cannot be decoded or expressed are left out.

    :param ranges: start and end address of the module's code; the linker keeps the FDEs of code that it discards.
    :raises FormatError: the CFI is malformed as a whole.
    :raises MemoryReadError: it cannot be read.
    :raises TranslationError: a rule of the result differs from the CFI.
    """
    descriptions = list(_descriptions(cfi, ranges, arch))
    made = make_table(descriptions, arch, Target(NEWEST))
    data = encode.encode(encode.SectionSpec(cfi.address, (made.table,)))
    results = map(of_sframe, listed_functions([Section(data, cfi.address)]))
    prove(descriptions, results, made.losses, arch)
    return data


def _descriptions(cfi: CfiSection, ranges: Sequence[tuple[int, int]], arch: Arch) -> Iterator[Description]:
    code = RangeMap((start, end, None) for start, end in ranges)
    rules = CfiRules(arch)
    known: set[tuple[int, int]] = set()
    for start, end, offset in cfi.extents():
        place = code.find(start)
        if place is None or not start < end <= place[1] or (start, end) in known:
            continue
        known.add((start, end))
        try:
            yield of_cfi(cfi.function(offset), rules)
        except FormatError:
            continue
