"""Protocols for a source of stacks: threads with registers, memory, and loaded code.

A core file and a live process are targets (:mod:`sframe_unwind.process.core_target`,
:mod:`sframe_unwind.process.live_target`).  A sample of a profiler has only the :class:`UnwindableCode` of its process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiMatch
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.process.base import Thread
from sframe_unwind.source.debug_info import Place
from sframe_unwind.unwind.modules import Modules
from sframe_unwind.unwind.walk import Frame

if TYPE_CHECKING:
    from sframe_unwind.code.rows.at_address import CodeRows


class PlacedCode(NamedTuple):
    """The rows that the machine code of a file gives, and where the file is loaded."""

    rows: CodeRows
    bias: int
    """Address in memory minus address in the file."""


class SymbolMatch(NamedTuple):
    """The function that contains an address."""

    function: str
    offset: int
    """Offset of the address in the function, in bytes."""


class UnwoundThread(NamedTuple):
    """A thread with its frames, before functions are named."""

    thread: Thread
    frames: tuple[Frame, ...]
    end: str
    """Why the stack ends."""


class UnwindableCode(Protocol):
    """The loaded code of a process or a kernel, and its unwind data."""

    def find_cfi(self, pc: int) -> CfiMatch | None:
        """Return the DWARF CFI for a lookup address; ``None``: there is none.

        :raises SFrameError: the CFI is malformed, or cannot be read.
        """

    def is_code(self, pc: int) -> bool:
        """Return whether code at an address can be executed.  A guess by frame pointers accepts only such a caller."""

    def may_be_trampoline(self, pc: int) -> bool:
        """Return whether the code at an address can be a signal trampoline; ``False`` saves a read of memory."""

    def code_rows(self, pc: int) -> PlacedCode | None:
        """Return the rows that the machine code at a lookup address gives.

        ``None``: its file is not known, or the extra ``code`` is not installed.
        """


class NamedObject(Protocol):
    """A loaded executable, library or kernel module, with the names of its functions."""

    @property
    def name(self) -> str:
        """Its path, or a name such as ``[vdso]``."""

    @property
    def bias(self) -> int:
        """Address in memory minus address in the file."""

    def function_at(self, pc: int) -> SymbolMatch | None:
        """Return the function that contains an address in memory; ``None``: no symbol covers it."""

    def places(self, pc: int) -> list[Place]:
        """Return the inlined functions and the function at an address in memory, innermost first, with their lines."""


class Code(UnwindableCode, Protocol):
    """Loaded code with modules that have SFrame, and with names."""

    @property
    def modules(self) -> Modules:
        """The modules, for lookup in SFrame."""

    def find(self, pc: int) -> NamedObject | None:
        """Return the object that contains the code at an address; ``None``: no object does."""

    def run_time_name(self, pc: int) -> str:
        """Return the registered name of code that the process generated; empty: there is none."""

    def prefers_cfi(self, pc: int) -> bool:
        """Return whether CFI takes precedence for a lookup address; see :mod:`sframe_unwind.unwind.precedence`."""

    def why_no_data(self, pc: int) -> str:
        """Return why there is no unwind data for a lookup address; empty: nothing more is known."""


class Target(Protocol):
    """A core file, a live process, or another source of threads whose stacks can be unwound."""

    @property
    def arch(self) -> Arch:
        """The architecture."""

    @property
    def threads(self) -> Sequence[Thread]:
        """The threads with their registers."""

    @property
    def code(self) -> Code:
        """The loaded code."""

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of memory at an address.

        :raises MemoryReadError: not all of the bytes can be read.
        """

    def unwind(self, thread: Thread) -> UnwoundThread:
        """Return the frames of one of the threads; usually by :func:`sframe_unwind.process.stacks.walk`."""
