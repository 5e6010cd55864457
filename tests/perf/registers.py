"""The user registers of samples, in the order of the kernel's numbers (``asm/perf_regs.h``), with GDB's names."""

from __future__ import annotations

from itertools import chain

_AMD64 = [
    *("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "rip", "eflags", "cs", "ss", "ds", "es", "fs", "gs"),
    *(f"r{number}" for number in range(8, 16)),
]
_UNRECORDED = ("ds", "es", "fs", "gs")
"""``REG_NOSUPPORT`` in ``arch/x86/kernel/perf_regs.c``: perf does not request them."""
_AARCH64 = [*(f"x{number}" for number in range(31)), "sp", "pc"]
_S390X = [*chain.from_iterable([f"{kind}{number}" for number in range(16)] for kind in "rf"), "pswm", "pc"]

RECORDED: dict[str, dict[int, str]] = {
    "amd64": {number: name for number, name in enumerate(_AMD64) if name not in _UNRECORDED},
    "aarch64": dict(enumerate(_AARCH64)),
    "aarch64_be": dict(enumerate(_AARCH64)),
    "s390x": dict(enumerate(_S390X)),
}
"""By ABI, the registers that perf requests."""

SP = {"amd64": "rsp", "aarch64": "sp", "aarch64_be": "sp", "s390x": "r15"}
