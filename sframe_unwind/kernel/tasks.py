"""Lists the tasks of a kernel, with the registers of those that do not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import SwitchFrame
from sframe_unwind.errors import KernelError
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.structures import StructureReader
from sframe_unwind.kernel.types import Place
from sframe_unwind.named_tuple import NamedTuple

_TASK = "task_struct"
_LISTED = "tasks"
_COMM_SIZE = 64
"""Maximum length of a command's name to read, in bytes; the kernel has 16."""

_STATES = ((0x80, "X"), (0x40, "P"), (0x20, "Z"), (0x10, "X"), (8, "t"), (4, "T"), (2, "D"), (1, "S"))
"""Bits of a task's state and their letters, as in ps (1), the most significant bit first."""
_NO_LOAD = 0x400
"""The bit that, together with ``D``, marks an idle kernel thread."""
BLOCKED = "D"
"""State: the task waits and cannot be interrupted by a signal."""
RUNNING = "R"


class Task(NamedTuple):
    """A task, which is a thread of a process or of the kernel."""

    address: int
    """Address of its ``struct task_struct``."""
    pid: int
    """Its thread id; 0: the idle task of a processor."""
    command: str
    state: str
    """Its state as a letter, as in ps (1)."""
    on_cpu: bool
    """Whether it is running; its registers are then those of a processor."""
    registers: Mapping[int, int]
    """By DWARF number, the registers that it had when it last ran; empty: it is running."""

    @property
    def title(self) -> str:
        """The heading of its stack."""
        return f'Task {self.pid} "{self.command}", {self.state}'


class TaskList:
    """Reads the tasks of a kernel from its memory, which must not change meanwhile."""

    def __init__(self, kernel: Kernel) -> None:
        types = kernel.types
        self._kernel = kernel
        self._reader = StructureReader(kernel)
        self._state = next((path for path in ("__state", "state") if types.has(_TASK, path)), "__state")
        self._has_on_cpu = types.has(_TASK, "on_cpu")  # not in a kernel for one processor
        self._registers = {number: types.place(_TASK, path) for number, path in kernel.facts.task_registers.items()}

    def __iter__(self) -> Iterator[Task]:
        """Yield the tasks: the first one, then each process with its threads.

        :raises KernelError: a list does not end.
        :raises MemoryReadError: it cannot be read.
        """
        first = self._kernel.init_task
        yield self.read(first)
        links = self._place("tasks").offset
        for leader in self._reader.entries(first + links, links, _LISTED):
            yield from map(self.read, self._threads(leader))

    def find(self, pid: int) -> Task:
        """Return the task with a pid.

        :raises KernelError: there is none.
        """
        for task in self:
            if task.pid == pid:
                return task
        raise KernelError(f"no task has the pid {pid}")

    def read(self, address: int) -> Task:
        """Return the task at an address.

        :raises MemoryReadError: it cannot be read.
        """
        on_cpu = self._has_on_cpu and self._reader.number(address, self._place("on_cpu")) != 0
        registers = {number: self._reader.number(address, place) for number, place in self._registers.items()}
        switch = self._kernel.facts.switch_frame
        if switch is not None and not on_cpu:
            registers.update(self._switched(switch, self._reader.number(address, self._place(switch.pointer))))
        return Task(
            address=address,
            pid=self._reader.number(address, self._place("pid")),
            command=self._command(address),
            state=self._letter(address),
            on_cpu=on_cpu,
            registers={} if on_cpu else registers,
        )

    def _switched(self, switch: SwitchFrame, sp: int) -> dict[int, int]:
        types, arch = self._kernel.types, self._kernel.arch
        places = {number: types.place(switch.structure, path) for number, path in switch.registers.items()}
        registers = {number: self._reader.number(sp, place) for number, place in places.items()}
        return {arch.sp: sp + types.structure(switch.structure).size & ADDRESS_MASK, **registers}

    def _threads(self, leader: int) -> Iterator[int]:
        types, offset = self._kernel.types, self._place("thread_node").offset
        signal = self._reader.number(leader, self._place("signal"))
        if not signal:  # the process is being removed
            yield leader
            return
        yield from self._reader.entries(signal + types.place("signal_struct", "thread_head").offset, offset, _LISTED)

    def _letter(self, address: int) -> str:
        state = self._reader.number(address, self._place(self._state)) & 0xFFFF
        state |= self._reader.number(address, self._place("exit_state"))
        if state & 2 and state & _NO_LOAD:
            return "I"
        return next((letter for bit, letter in _STATES if state & bit), RUNNING)

    def _command(self, address: int) -> str:
        place = self._place("comm")
        text = self._reader.read(address + place.offset, min(place.size, _COMM_SIZE))
        return text.partition(b"\0")[0].decode("utf-8", "replace")

    def _place(self, path: str) -> Place:
        return self._kernel.types.place(_TASK, path)
