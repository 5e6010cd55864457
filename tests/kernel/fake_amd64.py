"""A kernel for AMD64 made by hand: its ORC, types and memory."""

from __future__ import annotations

from sframe_unwind.arch import BY_NAME
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.types import Types
from sframe_unwind.orc import OrcLayout, OrcTable
from tests.kernel.fake import STRUCTURES, TASK_MEMBERS, Memory, number, structure
from tests.orc.entries import BP, PREV_SP, SP, SP_INDIRECT, UNDEFINED, entry, packed

ARCH = BY_NAME["amd64"]
REGISTERS, PARTIAL, END = 1, 2, 4
"""Type and flags of entries."""
FUNCTION = 0xFFFFFFFF81349000
DRAP = FUNCTION + 0x40
SWITCH = 0xFFFFFFFF819FC000
START = 0xFFFFFFFF81000100
ENTRY_TEXT = 0xFFFFFFFF81C00000
SYSCALL, SAVED = ENTRY_TEXT, ENTRY_TEXT + 0x20
INTERRUPT, WITH_BP, ERROR_ENTRY = ENTRY_TEXT + 0x80, ENTRY_TEXT + 0xC0, ENTRY_TEXT + 0x100
TABLE = 0xFFFFFFFF82C00000
SYMBOLS = {
    "__entry_text_start": ENTRY_TEXT,
    "__entry_text_end": ENTRY_TEXT + 0x1000,
    "init_task": 0xFFFFFFFF82A10000,
}
ORC = (
    (START, entry((UNDEFINED, 0), flags=END)),
    (START + 0x20, entry((UNDEFINED, 0))),
    (FUNCTION, entry((SP, 32), (PREV_SP, -16))),
    (DRAP, entry((BP, 16), (PREV_SP, -16))),
    (FUNCTION + 0x80, entry((UNDEFINED, 0))),
    (SWITCH, entry((SP_INDIRECT, 24), (PREV_SP, -16))),
    (SWITCH + 0x40, entry((UNDEFINED, 0))),
    (SYSCALL, entry((UNDEFINED, 0), flags=END)),
    (SAVED, entry((SP, 0), flags=REGISTERS)),
    (INTERRUPT, entry((SP, 8), flags=PARTIAL)),
    (INTERRUPT + 0x20, entry((SP, 0), flags=REGISTERS)),
    (WITH_BP, entry((SP, 16), (PREV_SP, -8), flags=PARTIAL)),
    (ERROR_ENTRY, entry((SP, 16))),
    (ERROR_ENTRY + 0x40, entry((UNDEFINED, 0))),
)
_PT_REGS = ("r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8", "ax", "cx", "dx", "si", "di", "orig_ax")
PT_REGS = {name: 8 * at for at, name in enumerate((*_PT_REGS, "ip", "cs", "flags", "sp", "ss"))}
"""Offset of each member."""
_SWITCH_FRAME = ("r15", "r14", "r13", "r12", "bx", "bp", "ret_addr")
TYPES = {
    **STRUCTURES,
    "pt_regs": structure(168, **{name: (at, number()) for name, at in PT_REGS.items()}),
    "inactive_task_frame": structure(56, **{name: (8 * at, number()) for at, name in enumerate(_SWITCH_FRAME)}),
    "task_struct": structure(512, **TASK_MEMBERS, thread=(128, structure(16, sp=(8, number())))),
}


def table() -> OrcTable:
    return OrcTable(*packed(TABLE, ORC), OrcLayout.WITH_END)


def kernel(memory: Memory) -> Kernel:
    assert ARCH.linux_kernel is not None
    return Kernel(
        arch=ARCH,
        facts=ARCH.linux_kernel,
        places=(),
        types=Types(TYPES.get),
        symbol=SYMBOLS.get,
        read=memory.read,
        orc=table(),
    )
