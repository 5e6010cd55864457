"""The ABIs, one small file each, behind the one interface of :mod:`sframe_unwind.arch.base`."""

from __future__ import annotations

from sframe_unwind.arch import aarch64, amd64, s390x
from sframe_unwind.arch.base import Abi
from sframe_unwind.sframe.constants import AbiNumber

ABIS = {
    AbiNumber.AARCH64_ENDIAN_BIG: aarch64.BIG,
    AbiNumber.AARCH64_ENDIAN_LITTLE: aarch64.LITTLE,
    AbiNumber.AMD64_ENDIAN_LITTLE: amd64.ABI,
    AbiNumber.S390X_ENDIAN_BIG: s390x.ABI,
}
"""By the number in the SFrame header."""

BY_NAME = {abi.name: abi for abi in ABIS.values()}
"""By the name that JSON uses."""

__all__ = ["ABIS", "BY_NAME", "Abi"]
