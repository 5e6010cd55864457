"""A kernel made by hand: symbols, entry code, types and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sframe_unwind.arch import BY_NAME, Arch
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.kernel.entry_code import find_places
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.types import Member, Type, Types

ARCH = BY_NAME["aarch64"]
NOP, RET, BLR_X1, ERET = 0xD503201F, 0xD65F03C0, 0xD63F0020, 0xD69F03E0

EXCEPTION, USER, SWITCH, FORK, TO_KERNEL = (0xFFFFFFC008010000 + 0x100 * number for number in range(5))
VECTORS = 0xFFFFFFC008010800
HANDLER, USER_HANDLER = 0xFFFFFFC008020000, 0xFFFFFFC008020100


def branch(at: int, target: int, link: bool) -> int:
    """Return the instruction ``bl`` or ``b``."""
    return (0x94000000 if link else 0x14000000) | (target - at >> 2 & 0x03FFFFFF)


SYMBOLS = {
    "el1h_64_irq": EXCEPTION,
    "el1h_64_irq_handler": HANDLER,
    "el0t_64_sync": USER,
    "el0t_64_sync_handler": USER_HANDLER,
    "call_on_irq_stack": SWITCH,
    "ret_from_fork": FORK,
    "vectors": VECTORS,
    "ret_to_kernel": TO_KERNEL,
    "init_task": 0xFFFFFFC009000000,
}
CODE = {
    # A call of another function comes first.
    EXCEPTION: (NOP, branch(EXCEPTION + 4, FORK, True), branch(EXCEPTION + 8, HANDLER, True), RET),
    USER: (NOP, branch(USER + 4, USER_HANDLER, True), NOP),
    SWITCH: (NOP, BLR_X1, NOP, RET, BLR_X1),
    FORK: (branch(FORK, HANDLER, True), NOP, BLR_X1, branch(FORK + 12, USER, False), BLR_X1),
    TO_KERNEL: (NOP, ERET, NOP),
}


def number(size: int = 8) -> Type:
    return Type(size, lambda: (), lambda: None)


def array(element: Type, count: int) -> Type:
    return Type(element.size * count, lambda: (), lambda: element)


def structure(size: int, **members: tuple[int, Type]) -> Type:
    """Return a structure; members whose names begin with an underscore and a digit are anonymous."""
    listed = [Member("" if name[:2] == "_0" else name, at, kind) for name, (at, kind) in members.items()]
    return Type(size, lambda: listed, lambda: None)


LINKS = structure(16, next=(0, number()), prev=(8, number()))
_REGISTERS = structure(272, regs=(0, array(number(), 31)), sp=(248, number()), pc=(256, number()))
_CPU_CONTEXT = structure(
    104,
    **{f"x{n}": (8 * (n - 19), number()) for n in range(19, 29)},
    fp=(80, number()),
    sp=(88, number()),
    pc=(96, number()),
)
TASK_MEMBERS = {
    "__state": (0, number(4)),
    "exit_state": (4, number(4)),
    "on_cpu": (8, number(4)),
    "pid": (12, number(4)),
    "comm": (16, array(number(1), 16)),
    "tasks": (32, LINKS),
    "thread_node": (48, LINKS),
    "signal": (64, number()),
}
"""Members of ``struct task_struct`` that are the same on all machines."""
STRUCTURES = {
    "pt_regs": structure(
        336, _0union=(0, structure(272, _0struct=(0, _REGISTERS))), stackframe=(304, array(number(), 2))
    ),
    "task_struct": structure(512, **TASK_MEMBERS, thread=(128, structure(104, cpu_context=(0, _CPU_CONTEXT)))),
    "signal_struct": structure(64, thread_head=(16, LINKS)),
}


class Memory:
    """Bytes by address."""

    def __init__(self) -> None:
        self._bytes: dict[int, int] = {}
        for start, words in CODE.items():
            self.fill(start - 16, 16)
            for at, word in enumerate(words):
                self.write(start + 4 * at, word, 4)

    def write(self, address: int, value: int, size: int = 8) -> None:
        self.put(address, value.to_bytes(size, "little"))

    def put(self, address: int, data: bytes) -> None:
        self._bytes.update(enumerate(data, address))

    def fill(self, start: int, size: int) -> None:
        """Make memory readable, like a page."""
        for address in range(start, start + size):
            self._bytes.setdefault(address, 0)

    def read(self, address: int, size: int) -> bytes:
        try:
            return bytes(self._bytes[at] for at in range(address, address + size))
        except KeyError as error:
            raise MemoryReadError(address, size) from error

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """Yield each range of readable memory, in order: its address and its bytes."""
        start = None
        for address in sorted(self._bytes):
            start = address if start is None else start
            if address + 1 not in self._bytes:
                yield start, self.read(start, address + 1 - start)
                start = None

    def word(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")


def kernel(
    memory: Memory,
    symbols: Mapping[str, int] = SYMBOLS,
    arch: Arch = ARCH,
    structures: Mapping[str, Type] = STRUCTURES,
) -> Kernel:
    assert arch.linux_kernel is not None
    places = list(find_places(arch, symbols.get, memory.read))
    return Kernel(
        arch=arch,
        facts=arch.linux_kernel,
        places=places,
        types=Types(structures.get),
        symbol=symbols.get,
        read=memory.read,
    )
