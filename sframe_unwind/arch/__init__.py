"""Facts of the machines, one small file each, behind the one interface of :mod:`sframe_unwind.arch.base`."""

from __future__ import annotations

from sframe_unwind.arch import aarch64, amd64, s390x
from sframe_unwind.arch.base import Arch

ARCHES = (aarch64.BIG, aarch64.LITTLE, amd64.ARCH, s390x.ARCH)

BY_NAME = {arch.name: arch for arch in ARCHES}
"""By the name that JSON uses."""

__all__ = ["ARCHES", "BY_NAME", "Arch"]
