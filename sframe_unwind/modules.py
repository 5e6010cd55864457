"""The modules of a process, and what their SFrame data says of a pc."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Callable, NamedTuple, Union

from sframe_unwind.abi import Abi
from sframe_unwind.cfi_ranges import EhFrame
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.rule import Rule
from sframe_unwind.section import Section
from sframe_unwind.step import needs_registers
from sframe_unwind.table import Match

_CACHE_LIMIT = 200_000
"""Distinct pcs to remember; who single-steps through a program for hours must not fill the memory."""


class Module:
    """An executable or shared library in the address space of a process.

    :param name: what messages call it: its path, usually.
    :param ranges: start and end addresses of its code, and of whatever else may lie between.
    :param load: opens its SFrame section when somebody first asks for it; returns ``None`` where it has none,
        raises :class:`SFrameError` where it is unusable.
    :param load_cfi: opens its ``.eh_frame``, likewise.
    :param code_size: length of its code in bytes, where that is not the length of the ranges.
    """

    def __init__(
        self,
        name: str,
        ranges: Sequence[tuple[int, int]],
        load: Callable[[], Section | None],
        load_cfi: Callable[[], EhFrame | None] | None = None,
        code_size: int | None = None,
    ) -> None:
        self.name = name
        self.ranges = tuple(ranges)
        self.code_size = sum(end - start for start, end in ranges) if code_size is None else code_size
        self._load = load
        self._load_cfi = load_cfi
        self.error: SFrameError | None = None
        """Why the section cannot be used; known once it was opened."""

    @cached_property
    def section(self) -> Section | None:
        """The SFrame section, ``None`` where there is none or it is unusable (:attr:`error`)."""
        try:
            return self._load()
        except SFrameError as error:
            self.error = error
            return None

    @cached_property
    def _eh_frame(self) -> EhFrame | None:
        return self._load_cfi() if self._load_cfi else None

    def has_cfi(self, pc: int) -> bool:
        """Return whether ``.eh_frame`` describes the address; CFI that cannot be read does not."""
        try:
            return self._eh_frame is not None and self._eh_frame.covers(pc)
        except SFrameError:
            return False


class Covered(NamedTuple):
    """SFrame has a row for the pc."""

    rule: Rule
    signal: bool
    """The function is a signal trampoline: its caller was interrupted, not left by a call."""
    match: Match
    module: Module
    needs_registers: bool
    """The rule wants more than SP and FP: see :func:`sframe_unwind.step.needs_registers`."""


class NoData(NamedTuple):
    """SFrame says nothing of the pc.  That is not the end of the stack."""

    reason: str
    module: Module | None


class Unusable(NamedTuple):
    """There is SFrame data for the pc, but it is corrupt or cannot be read."""

    error: SFrameError
    module: Module


Answer = Union[Covered, NoData, Unusable]


class Modules:
    """The modules of one process at one time; make a new one when they change.

    :param abi: of the process; a module for another one is unusable.
    :param modules: in any order.
    :param report: called once for each module whose data turns out unusable, with one line for the user.
    :param discover: looks for modules that are not among ``modules`` when an address lies in none; see
        :meth:`look_again`.
    """

    def __init__(
        self,
        abi: Abi,
        modules: Iterable[Module],
        report: Callable[[str], None] | None = None,
        discover: Callable[[], Iterable[Module]] | None = None,
    ) -> None:
        self.abi = abi
        self.answers = _Answers(self._answer)
        """Lookup address to answer, filled as it is asked: ``answers[pc]``."""
        self._report = report
        self._reported: set[Module] = set()
        self._discover = discover
        self._given = tuple(modules)
        self._found: dict[object, Module] = {}
        self._may_discover = discover is not None
        self._take(self._given)

    def _take(self, modules: tuple[Module, ...]) -> None:
        self.modules = modules
        self._ranges = sorted(
            ((start, end, module) for module in modules for start, end in module.ranges),
            key=lambda entry: entry[0],
        )
        self._starts = [start for start, _, _ in self._ranges]

    def find(self, pc: int) -> Module | None:
        """Return the module whose code contains the address."""
        at = bisect_right(self._starts, pc) - 1
        if at >= 0:
            _, end, module = self._ranges[at]
            if pc < end:
                return module
        if not self._may_discover or self._discover is None:
            return None
        self._may_discover = False
        self._take(self._given)
        found = {(module.name, module.ranges): module for module in self._discover()}
        # One that was there before keeps what it has read.
        self._found = {
            key: self._found.get(key, module)
            for key, module in found.items()
            if not any(self.find(start) for start, _ in module.ranges)
        }
        self._take((*self._given, *self._found.values()))
        self.answers.clear()
        return self.find(pc)

    def look_again(self) -> None:
        """Let modules be discovered once more: the process has run, and may have loaded or unloaded some."""
        if self._discover is not None and not self._may_discover:
            self._may_discover = True
            self._take(self._given)
            self.answers.clear()

    def has_cfi(self, pc: int) -> bool:
        """Return whether the module at an address has DWARF CFI for it."""
        module = self.find(pc)
        return module is not None and module.has_cfi(pc)

    def _answer(self, pc: int) -> Answer:
        module = self.find(pc)
        if module is None:
            return NoData("no module has code there", None)
        try:
            return self._look_up(module, pc)
        except SFrameError as error:
            if module not in self._reported and self._report:
                self._reported.add(module)
                self._report(f"{module.name}: SFrame data not used: {error}")
            return Unusable(error, module)

    def _look_up(self, module: Module, pc: int) -> Answer:
        section = module.section
        if module.error:
            raise module.error
        if section is None:
            return NoData("the module has no SFrame section", module)
        if section.abi not in (None, self.abi):
            raise FormatError(f"SFrame for {section.abi and section.abi.name} in a process of {self.abi.name}")
        match = section.lookup(pc)
        if match is not None:
            return Covered(
                match.rule, match.function.fde.signal, match, module, needs_registers(match.rule, self.abi)
            )
        function = section.find(pc)
        if function is None:
            return NoData("no SFrame function contains the address", module)
        if not function.fde.num_rows:
            kind = "signal trampoline" if function.fde.signal else "function"
            return NoData(f"SFrame lists the {kind} at {function.start:#x} without rows", module)
        return NoData(f"the address lies before the first row of the function at {function.start:#x}", module)


class _Answers(dict[int, Answer]):
    """A dictionary that computes what it lacks: a pc asked for again costs one lookup of the interpreter's own."""

    def __init__(self, compute: Callable[[int], Answer]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, pc: int) -> Answer:
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        answer = self[pc] = self._compute(pc)
        return answer
