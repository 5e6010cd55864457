"""The modules of a process, and what their SFrame data says of a pc."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Callable, NamedTuple, Protocol, TypeVar, Union

from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.cfi.section import CfiMatch, CfiSection
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match, Miss
from sframe_unwind.unwind.step import needs_registers
from sframe_unwind.unwind_rule import UnwindRule

_Known = TypeVar("_Known")

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

    kind = "SFrame data"
    """What messages call its unwind data."""

    def __init__(
        self,
        name: str,
        ranges: Sequence[tuple[int, int]],
        load: Callable[[], Section | None],
        load_cfi: Callable[[], CfiSection | None] | None = None,
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
    def cfi(self) -> CfiSection | None:
        """The ``.eh_frame`` section, ``None`` where there is none.

        :raises SFrameError: it cannot be opened now; asked again, it is tried again.
        """
        return self._load_cfi() if self._load_cfi else None

    def has_cfi(self, pc: int) -> bool:
        """Return whether ``.eh_frame`` describes the address; CFI that cannot be read does not."""
        return self.cfi_record(pc) is not None

    def cfi_record(self, pc: int) -> int | None:
        """Return the address of the FDE in ``.eh_frame`` that contains an address, ``None`` where none can be found."""
        try:
            return None if self.cfi is None else self.cfi.record(pc)
        except SFrameError:
            return None

    def cfi_rule(self, pc: int) -> UnwindRule | None:
        """Return the rule that ``.eh_frame`` has for an address, with all registers that it locates.

        ``None`` where it has none, or one that cannot be read or is more than a rule can express.
        """
        return self._cfi_rules[pc]

    @cached_property
    def _cfi_rules(self) -> _Cache[UnwindRule | None]:
        return _Cache(self._read_cfi_rule)

    def _read_cfi_rule(self, pc: int) -> UnwindRule | None:
        try:
            found = None if self.cfi is None else self.cfi.match(pc)
        except SFrameError:
            return None
        return None if found is None else found.rule

    def run_time_name(self, pc: int) -> str:  # noqa: ARG002  # code registered at run time needs it
        """Return what code at an address was registered as at run time; empty where it has a file, or no name."""
        return ""

    def look_up(self, pc: int, modules: Modules) -> LookupResult:
        """Return what the unwind data says of an address.

        :param modules: those of the process.
        :raises SFrameError: it is unusable, or cannot be read.
        """
        section, arch = self.section, modules.arch
        if self.error:
            raise self.error
        if section is None:
            return NoData("the module has no SFrame section", self)
        if section.arch not in (None, arch):
            raise FormatError(f"SFrame for {section.arch and section.arch.name} in a process of {arch.name}")
        match = section.lookup(pc)
        if isinstance(match, Miss):
            return NoData(match.reason, self)
        return Found(match.rule, match.function.fde.signal, match, self, needs_registers(match.rule, arch))


class Procedure(NamedTuple):
    """A procedure that was registered at run time."""

    start: int
    """Address of its first byte."""
    end: int
    """Address behind its last byte."""
    name: str
    """As it was registered; empty where it has none."""
    described: str
    """Kind and address of the unwind info, in words."""


class RunTimeMatch(NamedTuple):
    """What run-time unwind info says of an address: the counterpart of :class:`sframe_unwind.sframe.table.Match`."""

    function: Procedure
    row_start: int
    """Where the rule begins to hold, in bytes from the procedure's start."""
    rule: UnwindRule


class Found(NamedTuple):
    """SFrame has a row for the pc, or run-time unwind info says the like."""

    rule: UnwindRule
    signal: bool
    """The function is a signal trampoline: its caller was interrupted, not left by a call."""
    match: Match | RunTimeMatch
    module: Module
    needs_registers: bool
    """The rule wants more than SP and FP: see :func:`sframe_unwind.unwind.step.needs_registers`."""


class NoData(NamedTuple):
    """SFrame says nothing of the pc.  That is not the end of the stack."""

    reason: str
    module: Module | None


class Unusable(NamedTuple):
    """There is SFrame data for the pc, but it is corrupt or cannot be read."""

    error: SFrameError
    module: Module


LookupResult = Union[Found, NoData, Unusable]


class ModuleSource(Protocol):
    """Modules that come and go while the process runs: code that it registers at run time."""

    def refresh(self) -> bool:
        """Notice what has come and gone; return whether anything has."""

    def find(self, pc: int) -> Module | None:
        """Return the module with the code at an address."""

    def is_used(self) -> bool:
        """Return whether there are any modules."""

    def name(self, pc: int) -> str:
        """Return what the code at an address was registered as; empty where it was not, or has no name."""

    def describe(self) -> list[str]:
        """Return the lines of ``sframe status`` about these modules."""


class Modules:
    """The modules of one process at one time; make a new one when they change.

    :param arch: of the process; a module for another one is unusable.
    :param modules: in any order.
    :param report: called once for each module whose data turns out unusable, with one line for the user.
    :param discover: looks for modules that are not among ``modules`` when an address lies in none; see
        :meth:`look_again`.
    :param run_time: code that the process registered itself.  It goes before what has a file: that may be a buffer in
        a module's data.
    """

    def __init__(
        self,
        arch: Arch,
        modules: Iterable[Module],
        report: Callable[[str], None] | None = None,
        discover: Callable[[], Iterable[Module]] | None = None,
        run_time: ModuleSource | None = None,
    ) -> None:
        self.arch = arch
        self.run_time = run_time
        if run_time is not None:
            run_time.refresh()
        self.answers = _Cache(self._answer)
        """Lookup address to answer, filled as it is asked: ``answers[pc]``."""
        self.cfi_rules = _Cache(self._cfi_rule)
        """Lookup address to what :meth:`cfi_rule` says of it, likewise."""
        self._agreements: dict[int, tuple[UnwindRule, bool]] = {}
        self._report = report
        self._reported: set[Module | str] = set()
        self._discover = discover
        self._given = tuple(modules)
        self._found: dict[object, Module] = {}
        self._may_discover = discover is not None
        self._take(self._given)

    def _take(self, modules: tuple[Module, ...]) -> None:
        self.modules = modules
        self._ranges = RangeMap((start, end, module) for module in modules for start, end in module.ranges)

    def find(self, pc: int) -> Module | None:
        """Return the module whose code contains the address."""
        module = self.run_time.find(pc) if self.run_time is not None else None
        if module is not None:
            return module
        module = self._ranges.get(pc)
        if module is not None:
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
            if not self._overlaps(module)
        }
        self._take((*self._given, *self._found.values()))
        self._forget()
        return self.find(pc)

    def _forget(self) -> None:
        """Drop what was found of addresses: they may be another module's now."""
        self.answers.clear()
        self.cfi_rules.clear()
        self._agreements.clear()

    def _overlaps(self, module: Module) -> bool:
        """Return whether a module lies where a known one does: it is the same one, which may begin a little earlier."""
        return any(self._ranges.overlapping(start, end) for start, end in module.ranges)

    def look_again(self) -> bool:
        """Look once more for modules that came or went: the process has run.

        Return whether what was found of addresses was dropped, which goes for whatever was made from it too.
        """
        changed = self.run_time is not None and self.run_time.refresh()
        if self._discover is not None and not self._may_discover:
            self._may_discover = changed = True
            self._take(self._given)
        if changed:
            self._forget()
        return changed

    def has_cfi(self, pc: int) -> bool:
        """Return whether the module at an address has DWARF CFI for it."""
        module = self.find(pc)
        return module is not None and module.has_cfi(pc)

    def cfi_rule(self, pc: int) -> UnwindRule | None:
        """Return the rule that the module at an address has for it in DWARF CFI; see :meth:`Module.cfi_rule`."""
        return self.cfi_rules[pc]

    def cfi_match(self, pc: int) -> CfiMatch | None:
        """Return what the module at an address has for it in DWARF CFI, ``None`` where it has nothing.

        :raises SFrameError: the CFI cannot be read, or is more than a rule can express.
        """
        module = self.find(pc)
        return None if module is None or module.cfi is None else module.cfi.match(pc)

    def cfi_agrees(self, pc: int, rule: UnwindRule) -> bool:
        """Return whether the CFI for an address gives the same CFA, return address and frame pointer as SFrame's rule.

        :param rule: SFrame's, for this address.
        """
        known = self._agreements.get(pc)
        if known is None or known[0] is not rule:
            cfi_rule = self.cfi_rules[pc]
            if len(self._agreements) >= _CACHE_LIMIT:
                self._agreements.clear()
            known = self._agreements[pc] = rule, cfi_rule is not None and agrees(rule, cfi_rule, self.arch)
        return known[1]

    def _cfi_rule(self, pc: int) -> UnwindRule | None:
        module = self.find(pc)
        return None if module is None else module.cfi_rule(pc)

    def _answer(self, pc: int) -> LookupResult:
        module = self.find(pc)
        if module is None:
            return NoData("no module has code there", None)
        try:
            return module.look_up(pc, self)
        except SFrameError as error:
            line = f"{module.name}: {module.kind} not used: {error}"
            if self._report and not {module, line} & self._reported:  # a module can come again
                self._reported |= {module, line}
                self._report(line)
            return Unusable(error, module)


class _Cache(dict[int, _Known]):
    """A dictionary that computes what it lacks: a pc asked for again costs one lookup of the interpreter's own."""

    def __init__(self, compute: Callable[[int], _Known]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, pc: int) -> _Known:
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        known = self[pc] = self._compute(pc)
        return known
