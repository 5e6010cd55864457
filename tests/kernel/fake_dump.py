"""The crash dump of a kernel of a few functions, made by hand: the kernel's file, and the memory that the dump has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sframe_unwind.arch import Arch
from sframe_unwind.elf import opened
from sframe_unwind.kernel.types import Type
from sframe_unwind.process.target import SymbolMatch
from sframe_unwind.process.vmcore import LoadedModule
from sframe_unwind.source.debug_info import Place
from tests.elf.objects import FUNCTION, link, run, tools_for
from tests.kernel.fake import STRUCTURES, Memory

SOURCE = (
    FUNCTION
    + """
    .macro framed name, callee
    function \\name
    .cfi_startproc
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    bl \\callee
    ldp x29, x30, [sp], #32
    .cfi_restore 30
    .cfi_restore 29
    .cfi_def_cfa_offset 0
    ret
    .cfi_endproc
    .size \\name, . - \\name
    .endm
    .text
    function _start
    ret
    function __switch_to
    ret
    framed schedule, __switch_to
    framed worker, schedule
    framed el0t_64_sync_handler, schedule
    framed el1h_64_irq_handler, __switch_to
    function el0t_64_sync
    bl el0t_64_sync_handler
    ret
    function el1h_64_irq
    bl el1h_64_irq_handler
    ret
    function ret_from_fork
    blr x19
    b ret_from_fork
    .data
    .globl init_task
init_task:
    .fill 0x2000
    .globl stacks
stacks:
    .fill 0x2000
"""
)
MOVED = 0x40000000
"""Distance by which the kernel is moved, as by KASLR."""
STACK = 0xFFFFFF8000100000


def build_kernel(folder: Path, *objects: Path, options: tuple[str, ...] = ()) -> Path:
    """Assemble and link the kernel's file; return its path."""
    source = folder / "kernel.s"
    source.write_text(SOURCE, encoding="ascii")
    tools = tools_for("aarch64", 3)
    run(tools / "as", "--gsframe", source, "-o", folder / "kernel.o")
    return link(tools, "aarch64", folder / "vmlinux", folder / "kernel.o", *objects, options=("-e", "_start", *options))


class Dump:
    """A kernel in memory, with the methods of :class:`sframe_unwind.process.vmcore.KernelProgram`."""

    def __init__(self, vmlinux: Path) -> None:
        self.memory = Memory()
        self.main_file: tuple[str, int] | None = (str(vmlinux), MOVED)
        self.loaded: list[LoadedModule] = []
        with opened(str(vmlinux)) as binary:
            self._symbols = {symbol.name: symbol.address + MOVED for symbol in binary.symbols}
            for table in binary.sections:
                if table.flags and table.size and table.has_contents:
                    self.memory.put(table.address + MOVED, binary.contents(table))
        self._symbols |= {"init_task": self._data(vmlinux), "stacks": self._data(vmlinux) + 0x2000}
        self.memory.fill(STACK, 0x1000)
        self.running: dict[int, int] = {}

    @staticmethod
    def _data(vmlinux: Path) -> int:
        with opened(str(vmlinux)) as binary:
            found = binary.named(".data")
            assert found is not None
            return found.address + MOVED

    def read(self, address: int, size: int) -> bytes:
        return self.memory.read(address, size)

    def symbol(self, name: str) -> int | None:
        return self._symbols.get(name)

    def structure(self, tag: str) -> Type | None:
        return STRUCTURES.get(tag)

    def function_at(self, address: int) -> SymbolMatch | None:
        code = [(at, name) for name, at in self._symbols.items() if at <= address]
        at, name = max(code)
        return SymbolMatch(name, address - at)

    def places(self, _address: int) -> list[Place]:
        return []

    def running_registers(self, _task: int, _arch: Arch) -> dict[int, int]:
        return self.running

    def modules(self) -> Iterable[LoadedModule]:
        return self.loaded

    def after_call(self, function: str) -> int:
        """Return the address after the call in a function: the call is its first instruction, or follows two others."""
        start = self._symbols[function]
        return start + (12 if function not in ("el0t_64_sync", "el1h_64_irq", "ret_from_fork") else 4)

    def task(self, pid: int, name: str, on_cpu: bool, sp: int, pc: int, fp: int) -> int:
        """Write a task; return its address.  The first one is `init_task`."""
        at = self._symbols["init_task"] + 0x800 * pid
        self.memory.fill(at, 0x800)
        for offset, value, size in ((0, 2, 4), (8, int(on_cpu), 4), (12, pid, 4), (64, 0, 8)):
            self.memory.write(at + offset, value, size)
        self.memory.put(at + 16, name.encode().ljust(16, b"\0"))
        for offset, value in ((80, fp), (88, sp), (96, pc)):
            self.memory.write(at + 128 + offset, value)
        return at

    def listed(self, *tasks: int) -> None:
        """Link the lists of tasks."""
        for here, following in zip(tasks, (*tasks[1:], tasks[0])):
            self.memory.write(here + 32, following + 32)

    def frames(self, at: int, *callers: str) -> int:
        """Write frames of 32 bytes, each with the return address in its caller; return SP after the last one."""
        for number, caller in enumerate(callers):
            self.memory.write(at + 32 * number, at + 32 * (number + 1))
            self.memory.write(at + 32 * number + 8, self.after_call(caller))
        return at + 32 * len(callers)


def waiting(dump: Dump, pid: int, *callers: str) -> int:
    """Write a task that waits in `schedule`, and its stack; return its address."""
    sp = STACK + 0x400 * pid
    dump.frames(sp, *callers)
    return dump.task(pid, f"task{pid}", on_cpu=False, sp=sp, pc=dump.after_call("schedule"), fp=sp)
