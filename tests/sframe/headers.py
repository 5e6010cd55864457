"""Headers for tests of single records."""

from __future__ import annotations

from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber, Flag
from sframe_unwind.sframe.header import Header


def empty_header(abi: AbiNumber, version: int) -> Header:
    """Return a header without flags, fixed offsets and functions, in the byte order of an ABI."""
    return Header(
        byteorder=ARCH_BY_ABI[abi].byteorder,
        version=version,
        flags=Flag(0),
        abi=abi,
        fixed_fp_offset=0,
        fixed_ra_offset=0,
        aux_size=0,
        num_fdes=0,
        num_fres=0,
        fre_size=0,
        fde_offset=0,
        fre_offset=0,
    )
