"""Numbers of the format (sframe.h), under the specification's names minus the prefixes."""

from __future__ import annotations

from enum import IntEnum, IntFlag

from sframe_unwind.arch import Arch, aarch64, amd64, s390x

MAGIC = 0xDEE2
"""``SFRAME_MAGIC``, specification 2.1.1; reads 0xe2de in the other byte order."""

VERSIONS = (1, 2, 3)


class Flag(IntFlag):
    """Section-wide flags (``sfp_flags``), specification 2.1.3."""

    FDE_SORTED = 0x1
    FRAME_POINTER = 0x2  # versions 1 and 2
    FDE_FUNC_START_PCREL = 0x4


KNOWN_FLAGS = {1: 0x3, 2: 0x7, 3: 0x5}
"""The bits that a version defines; all others must be zero.  FDE_FUNC_START_PCREL is errata 1 of version 2."""


class AbiNumber(IntEnum):
    """``sfh_abi_arch``, specification 2.2.1."""

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
    """How rows are matched against a pc, specification 2.3.2 (version 2 calls this the FDE type)."""

    INC = 0
    MASK = 1


class FdeType(IntEnum):
    """How a row's data words are laid out; FLEX exists from version 3."""

    DEFAULT = 0
    FLEX = 1


class PauthKey(IntEnum):
    """The key that signs return addresses on AArch64, specification 2.3.1."""

    A = 0
    B = 1


PLT_ENTRY_SIZE_V1 = 16
"""Version 1 has no repetition size: its mask FDEs describe AMD64 PLT entries, which are 16 bytes long."""
