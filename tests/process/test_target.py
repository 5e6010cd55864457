"""A source of stacks that is neither a core file nor a process: the attributes that it needs, and its stacks."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.address import WORD_SIZE
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiMatch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.process.base import Thread
from sframe_unwind.process.stacks import named, of_context, walk
from sframe_unwind.process.target import SymbolMatch, Target, UnwoundThread
from sframe_unwind.sframe.constants import ARCH_BY_ABI, AbiNumber
from sframe_unwind.source.debug_info import Place
from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.saved_context import SavedContext
from sframe_unwind.unwind_rule import OUTERMOST
from tests.unwind.world import CODE, STACK, Memory, module, sp_based

ABI = AbiNumber.AMD64_ENDIAN_LITTLE
ARCH = ARCH_BY_ABI[ABI]
FUNCTIONS = {"schedule": CODE, "worker": CODE + 0x100, "start": CODE + 0x200}
GAP = CODE + 0x300
"""The address of code without unwind data."""


class Kernel(NamedTuple):
    """The only object of the target, at the addresses of its file."""

    name: str = "vmlinux"
    bias: int = 0

    def function_at(self, pc: int) -> SymbolMatch | None:
        for name, start in FUNCTIONS.items():
            if start <= pc < start + 0x100:
                return SymbolMatch(name, pc - start)
        return None

    def places(self, _pc: int) -> list[Place]:
        return []


class KernelCode:
    def __init__(self) -> None:
        framed = [(0, sp_based(ARCH, 16, ra_at=-8))]
        functions = dict.fromkeys([(CODE, 0x100), (CODE + 0x100, 0x100)], framed)
        self.modules = Modules(ARCH, [module(ABI, {**functions, (CODE + 0x200, 0x100): [(0, OUTERMOST)]})])

    def find_cfi(self, _pc: int) -> CfiMatch | None:
        return None

    def is_code(self, pc: int) -> bool:
        return CODE <= pc < CODE + 0x400

    def may_be_trampoline(self, _pc: int) -> bool:
        return False

    def code_rows(self, _pc: int) -> None:
        return None

    def find(self, pc: int) -> Kernel | None:
        return Kernel() if self.is_code(pc) else None

    def run_time_name(self, _pc: int) -> str:
        return ""

    def prefers_cfi(self, _pc: int) -> bool:
        return False

    def why_no_data(self, pc: int) -> str:
        return "assembly without unwind data" if pc >= GAP else ""


class KernelMemory:
    """The memory of two tasks that wait in ``schedule``."""

    def __init__(self, *stacks: list[int]) -> None:
        self.arch: Arch = ARCH
        self.code = KernelCode()
        words = {}
        threads = []
        for number, (pc, *callers) in enumerate(stacks):
            sp = STACK + 0x100 * number
            threads.append(Thread(number + 1, f"task{number}", "D", {ARCH.pc: pc, ARCH.sp: sp, ARCH.fp: 0}))
            words.update({sp + 16 * level + 8: caller for level, caller in enumerate(callers)})
        self.threads = tuple(threads)
        self._memory = Memory(words)

    def read(self, address: int, size: int) -> bytes:
        if size != WORD_SIZE:
            raise MemoryReadError(address, size)
        return self._memory(address).to_bytes(size, "little")

    def unwind(self, thread: Thread) -> UnwoundThread:
        return walk(thread, self.arch, self.code, self.read, interrupted=False)


def test_stacks_of_tasks() -> None:
    target: Target = KernelMemory([CODE + 0x40, CODE + 0x120, CODE + 0x220], [CODE + 0x40, CODE + 0x150, GAP + 0x10])
    first, second = (named(target.unwind(thread), target.code) for thread in target.threads)
    assert first.title == 'Thread 1 "task0", D'
    assert [(frame.function, frame.offset) for frame in first.frames] == [
        *[("schedule", 0x40), ("worker", 0x20), ("start", 0x20)]
    ]
    assert first.end == "outermost frame"
    assert [frame.function for frame in second.frames] == ["schedule", "worker", ""]
    assert second.end == "no unwind data: assembly without unwind data"


def test_saved_context_in_it() -> None:
    """Its pc is the first byte of a function, and the function is found: the pc is not taken for a return address."""
    target: Target = KernelMemory([CODE + 0x40, CODE + 0x220])
    context = SavedContext(ARCH, {ARCH.pc: CODE, ARCH.sp: STACK, ARCH.fp: 0}, interrupted=True)
    shown = of_context(context, target)
    assert [(frame.function, frame.offset) for frame in shown.frames] == [("schedule", 0), ("start", 0x20)]
    assert shown.thread == "context"
