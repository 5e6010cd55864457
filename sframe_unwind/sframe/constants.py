"""Constants of the format (``sframe.h``).  Names are those of the specification without their prefixes."""

from __future__ import annotations

from enum import IntEnum, IntFlag

from sframe_unwind.arch import Arch, aarch64, amd64, s390x
from sframe_unwind.named_tuple import NamedTuple

MAGIC = 0xDEE2
"""``SFRAME_MAGIC``, V2 errata 1, 2.1.1."""

VERSIONS = (1, 2, 3)

NEWEST = VERSIONS[-1]
"""The default version for writing."""

EXPECTED_VERSIONS = f"{', '.join(map(str, VERSIONS[:-1]))} or {NEWEST}"
"""The versions in words, for error messages."""


class Flag(IntFlag):
    """Section-wide flags (``sfp_flags``), V2 errata 1, 2.1.3."""

    FDE_SORTED = 0x1
    FRAME_POINTER = 0x2  # versions 1 and 2
    FDE_FUNC_START_PCREL = 0x4


KNOWN_FLAGS = {1: 0x3, 2: 0x7, 3: 0x5}
"""The flag bits that each version defines.  All others must be zero.  V2 errata 1 added FDE_FUNC_START_PCREL."""


class Features(NamedTuple):
    """The features of a version."""

    signal: bool
    """FDEs can be marked as signal trampolines."""
    flexible: bool
    """There are flexible FDEs, whose rows can use any base register, and values that are not in memory."""
    undefined_ra: bool
    """A row can mark its frame as the outermost one."""
    pcrel_optional: bool
    """Producers also write start fields that are relative to the section."""
    linkable: bool
    """GNU ld 2.46 and later link object files with it."""
    attributes: bool
    """An attribute record precedes the rows of a function; otherwise, its FDE has the number of rows and the info."""
    repetition_size: bool
    """The size of the repeated block of a mask FDE is stored."""
    s390x_registers: bool
    """Data words of default rows for s390x can name a register in place of an offset."""


FEATURES = {
    1: Features(
        signal=False,
        flexible=False,
        undefined_ra=False,
        pcrel_optional=True,
        linkable=False,
        attributes=False,
        repetition_size=False,
        s390x_registers=False,
    ),
    2: Features(
        signal=False,
        flexible=False,
        undefined_ra=False,
        pcrel_optional=True,
        linkable=False,
        attributes=False,
        repetition_size=True,
        s390x_registers=True,
    ),
    3: Features(
        signal=True,
        flexible=True,
        undefined_ra=True,
        pcrel_optional=False,
        linkable=True,
        attributes=True,
        repetition_size=True,
        s390x_registers=False,
    ),
}
"""By version (V2 errata 1; the manual of binutils 2.46)."""

MAX_ROWS = 0xFFFF
"""Maximum number of rows of a function: the field has 16 bits in version 3, and GNU as has this limit in all
versions."""


class AbiNumber(IntEnum):
    """``sfh_abi_arch``, V2 errata 1, 2.2.1."""

    AARCH64_ENDIAN_BIG = 1
    AARCH64_ENDIAN_LITTLE = 2
    AMD64_ENDIAN_LITTLE = 3
    S390X_ENDIAN_BIG = 4


ARCH_BY_ABI: dict[AbiNumber, Arch] = {
    AbiNumber.AARCH64_ENDIAN_BIG: aarch64.BIG,
    AbiNumber.AARCH64_ENDIAN_LITTLE: aarch64.LITTLE,
    AbiNumber.AMD64_ENDIAN_LITTLE: amd64.ARCH,
    AbiNumber.S390X_ENDIAN_BIG: s390x.ARCH,
}


class PcType(IntEnum):
    """How rows are matched against a pc, V2 errata 1, 2.3.2.  Version 2 calls this the FDE type."""

    INC = 0
    MASK = 1


class FdeType(IntEnum):
    """Layout of the data words of a row.  FLEX exists since version 3 (binutils 2.46)."""

    DEFAULT = 0
    FLEX = 1


class PauthKey(IntEnum):
    """The key that signs return addresses on AArch64, V2 errata 1, 2.3.1."""

    A = 0
    B = 1


PLT_ENTRY_SIZE_V1 = 16
"""Repetition size of mask FDEs in version 1, in bytes.  Version 1 has no field for it; its mask FDEs describe PLT
entries of AMD64."""

GNU_AS_WRITES_FLEXIBLE = (AbiNumber.AMD64_ENDIAN_LITTLE, AbiNumber.S390X_ENDIAN_BIG)
"""The ABIs for which GNU as 2.46 and 2.47 write flexible FDEs; for AArch64 they leave such functions out."""
