"""The machines, in one small file each, with the common interface of :mod:`sframe_unwind.code.decode.machines.base`."""

from __future__ import annotations

from sframe_unwind.code.decode.machines import aarch64, amd64, s390x
from sframe_unwind.code.decode.machines.base import Machine

MACHINES = {machine.arch.name: machine for machine in (amd64.MACHINE, aarch64.LITTLE, aarch64.BIG, s390x.MACHINE)}
"""The machines by the name of the ABI."""

__all__ = ["MACHINES", "Machine"]
