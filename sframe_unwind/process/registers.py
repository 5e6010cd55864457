"""The general registers of a thread as the kernel writes them, in core files and for ``ptrace`` alike.

That is ``struct user_regs_struct`` (AMD64), ``user_pt_regs`` (AArch64) and ``s390_regs`` (s390x): 8-byte words, but for
the access registers of s390x, which unwinding does not want.
"""

from __future__ import annotations

import struct

from sframe_unwind.arch import Arch
from sframe_unwind.errors import FormatError

_AMD64 = (15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, None, 16, None, None, 7)
_AARCH64 = tuple(range(33))
_S390X = (64, 65, *range(16))

_LAYOUTS: dict[str, tuple[int | None, ...]] = {
    "amd64": _AMD64,
    "aarch64": _AARCH64,
    "aarch64_be": _AARCH64,
    "s390x": _S390X,
}
"""By ABI: the DWARF number of the register in each word."""

_FLOATING_POINT = 16
"""s390x: the DWARF number of f0; the numbers behind it are in another order than the registers."""


def general_registers(arch: Arch, data: bytes) -> dict[int, int]:
    """Return registers by DWARF number.

    :param data: what the kernel wrote.
    :raises FormatError: it is too short.
    """
    layout = _LAYOUTS[arch.name]
    if len(data) < 8 * len(layout):
        raise FormatError(f"{len(data)} bytes of registers, expected at least {8 * len(layout)} for {arch.name}")
    words = struct.unpack_from(f"{'<' if arch.byteorder == 'little' else '>'}{len(layout)}Q", data)
    return {number: word for number, word in zip(layout, words) if number is not None}


def floating_point_registers(arch: Arch, data: bytes) -> dict[int, int]:
    """Return the floating-point registers that can hold a saved address, by DWARF number: those of s390x.

    :param data: ``struct s390_fp_regs``: the control register, and 16 registers of 8 bytes.
    """
    if arch.name != "s390x" or len(data) < 136:
        return {}
    by_name = {name: number for number, name in arch.register_names.items()}
    return {by_name[f"f{n}"]: word for n, word in enumerate(struct.unpack_from(">16Q", data, 8))}
