"""All run-time code of a process, from all of its registration lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from sframe_unwind.arch import Arch
from sframe_unwind.memory import ReadMemory
from sframe_unwind.runtime_code import status_text
from sframe_unwind.runtime_code.head import FindSymbol, find_lists
from sframe_unwind.runtime_code.jit.image_list import JitList
from sframe_unwind.runtime_code.libunwind.registrations import UnwindList
from sframe_unwind.runtime_code.names import JIT_SYMBOL
from sframe_unwind.unwind.modules import Module


class RunTimeCode:
    """The registration lists of one process.  It implements :class:`sframe_unwind.unwind.modules.ModuleSource`.

    :param read: reads the current memory of the process, without a cache.
    :param find: finds symbols.
    :param report: called with one line for each damaged list or entry; no line is repeated.
    """

    def __init__(self, arch: Arch, read: ReadMemory, find: FindSymbol, report: Callable[[str], None]) -> None:
        self._told: set[str] = set()
        self._report = report
        lists = find_lists(find, read, arch)
        self._libunwind = [UnwindList(read, address, arch.byteorder, self._report_once) for address in lists]
        self._jit = [JitList(read, address, arch, self._report_once) for address in find(JIT_SYMBOL)]
        self._lists: Sequence[UnwindList | JitList] = (*self._libunwind, *self._jit)

    def refresh(self) -> bool:
        """Read the lists again after the process has run; return whether they changed."""
        changed = [one.refresh() for one in self._lists]
        return any(changed)

    def find(self, pc: int) -> Module | None:
        """Return the module that contains the code at an address, or ``None``."""
        found = (one.find(pc) for one in self._lists)
        return next((module for module in found if module is not None), None)

    def name(self, pc: int) -> str:
        """Return the registered name of the code at an address; empty: it is not run-time code, or has no name."""
        module = self.find(pc)
        return "" if module is None else module.run_time_name(pc)

    def describe(self) -> list[str]:
        """Return the lines of ``sframe status`` about this code."""
        registered = [module for one in self._libunwind for module in one.modules(status_text.SHOWN)]
        images = [image for one in self._jit for image in one.modules()]
        return status_text.to_text(registered[: status_text.SHOWN], sum(map(len, self._libunwind)), images)

    def has_registered(self) -> bool:
        """Return whether any code is registered with libunwind.  Such code has no symbols."""
        return any(map(len, self._libunwind))

    def _report_once(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._report(line)
