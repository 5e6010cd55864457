"""The modules of a process, and the lookup of unwind data by address."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Callable, Protocol, Union

from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.agreement import agrees
from sframe_unwind.errors import FormatError, SFrameError
from sframe_unwind.memory import ReadMemory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.sframe.section import Section
from sframe_unwind.sframe.table import Match, Miss
from sframe_unwind.unwind.address_cache import AddressCache
from sframe_unwind.unwind.agreements import Agreements
from sframe_unwind.unwind.placement import checked
from sframe_unwind.unwind.step import needs_registers
from sframe_unwind.unwind.stub_rows import proven_rule
from sframe_unwind.unwind_rule import UnwindRule

if TYPE_CHECKING:
    from sframe_unwind.cfi.section import CfiMatch, CfiSection, PlacedCfi
    from sframe_unwind.unwind.code_match import CodeMatch, ModuleCode
    from sframe_unwind.unwind.run_time_match import RunTimeMatch

NO_SECTION = "the module has no SFrame section"
"""The reason of :class:`NoData` for a module without SFrame."""


class Module:
    """An executable or shared library in the address space of a process.

    :param name: the name in messages, usually the path.
    :param ranges: start and end address (exclusive) of each range of its code.  A range may include other bytes.
    :param load: opens the SFrame section, on first use.  It returns ``None`` if the module has no section, and raises
        :class:`SFrameError` if the section is unusable.
    :param load_cfi: opens the ``.eh_frame`` section, on first use, in the same way.
    :param code_size: size of the code in bytes; ``None``: the total size of the ranges.
    :param load_build_id: reads the build ID, in hexadecimal digits; empty: there is none.
    :param load_debug_cfi: opens each ``.debug_frame`` section of the module's files, on first use, in the order in
        which they count.  It leaves out what is unusable.
    :param load_rewriter: returns what rewrote the file after linking; see :attr:`rewritten`.
    """

    kind = "SFrame data"
    """Name of the unwind data in messages."""

    def __init__(
        self,
        name: str,
        ranges: Sequence[tuple[int, int]],
        load: Callable[[], Section | None],
        load_cfi: Callable[[], CfiSection | None] | None = None,
        code_size: int | None = None,
        load_build_id: Callable[[], str] | None = None,
        load_debug_cfi: Callable[[], Sequence[PlacedCfi]] | None = None,
        load_rewriter: Callable[[], str] | None = None,
    ) -> None:
        self.name = name
        self.ranges = tuple(ranges)
        self.code_size = sum(end - start for start, end in ranges) if code_size is None else code_size
        self._load = checked(load, lambda: self.cfi)
        self._load_cfi = load_cfi
        self._load_build_id = load_build_id
        self._load_debug_cfi = load_debug_cfi
        self._load_rewriter = load_rewriter
        self.load_code: Callable[[], ModuleCode | None] | None = None
        """Opens the machine code once; ``None``, also as its result: the code is not known."""
        self.generate: Generate | None = None
        """Makes a section if the module has none; set before :attr:`section` is first read."""
        self.is_generated = False
        """The section was made by :attr:`generate`."""
        self.error: SFrameError | None = None
        """Why the section cannot be used.  It is set when :attr:`section` is first read."""

    @cached_property
    def section(self) -> Section | None:
        """The SFrame section; ``None``: the module has none, or it is unusable (see :attr:`error`)."""
        try:
            section = self._load()
            if section is None and self.generate is not None:
                section = self.generate(self)
                self.is_generated = section is not None
            return section
        except SFrameError as error:
            self.error = error
            return None

    def build_id(self) -> str:
        """Return the build ID in hexadecimal digits; empty: there is none.

        :raises SFrameError: it cannot be read.
        """
        return "" if self._load_build_id is None else self._load_build_id()

    @cached_property
    def rewritten(self) -> str:
        """What rewrote the code of the file after linking, in words; empty: nothing did, as far as is known.

        The SFrame section may then describe the code as it was before; see :mod:`sframe_unwind.elf.rewritten`.
        """
        return "" if self._load_rewriter is None else self._load_rewriter()

    @cached_property
    def cfi(self) -> CfiSection | None:
        """The ``.eh_frame`` section; ``None``: the module has none.

        :raises SFrameError: the section cannot be opened.  The next access tries again.
        """
        return self._load_cfi() if self._load_cfi else None

    @cached_property
    def debug_cfi(self) -> Sequence[PlacedCfi]:
        """The ``.debug_frame`` sections of the module's files.

        They take precedence over ``.eh_frame``, because GDB sorts their records before those of ``.eh_frame``
        (dwarf2/frame.c).
        """
        return self._load_debug_cfi() if self._load_debug_cfi else ()

    def has_cfi(self, pc: int) -> bool:
        """Return whether DWARF CFI describes the address.  Unreadable CFI counts as none."""
        try:
            return any(cfi.covers(pc) for cfi in self.debug_cfi) or (self.cfi is not None and self.cfi.covers(pc))
        except SFrameError:
            return False

    def cfi_match(self, pc: int) -> CfiMatch | None:
        """Return the DWARF CFI for an address; ``None``: there is none.

        :raises SFrameError: the CFI cannot be read, or an :class:`UnwindRule` cannot express it.
        """
        for cfi in self.debug_cfi:
            if cfi.covers(pc):
                return cfi.match(pc)
        return None if self.cfi is None else self.cfi.match(pc)

    def cfi_row_end(self, pc: int) -> int | None:
        """Return the end address of the row of DWARF CFI for an address; ``None``: there is none.

        :raises SFrameError: the CFI cannot be read.
        """
        for cfi in self.debug_cfi:
            if cfi.covers(pc):
                return cfi.row_end(pc)
        return None if self.cfi is None else self.cfi.row_end(pc)

    def cfi_rule(self, pc: int) -> UnwindRule | None:
        """Return the rule of the DWARF CFI for an address, with all registers that it locates.

        ``None``: there is no rule, it cannot be read, or an :class:`UnwindRule` cannot express it.  The result is kept
        here and not in :class:`Modules`, because a module outlives changes of the list.
        """
        return self._cfi_rules[pc]

    @cached_property
    def _cfi_rules(self) -> AddressCache[UnwindRule | None]:
        return AddressCache(self._read_cfi_rule)

    def _read_cfi_rule(self, pc: int) -> UnwindRule | None:
        try:
            found = self.cfi_match(pc)
        except SFrameError:
            return None
        return None if found is None else found.rule

    def run_time_name(self, pc: int) -> str:  # noqa: ARG002  # JIT images use the parameter
        """Return the name that the process registered for the code at an address; empty: there is none."""
        return ""

    def look_up(self, pc: int, modules: Modules) -> LookupResult:
        """Look up the unwind data for an address.

        :param pc: lookup address.
        :param modules: the modules of the process.
        :raises SFrameError: the unwind data is unusable, or cannot be read.
        """
        section, arch = self.section, modules.arch
        if self.error:
            raise self.error
        if section is None:
            return NoData(NO_SECTION, self)
        if section.arch not in (None, arch):
            raise FormatError(f"SFrame for {section.arch and section.arch.name} in a process of {arch.name}")
        match = section.lookup(pc)
        if isinstance(match, Miss):
            return NoData(match.reason, self)
        rule = match.rule
        proven = None if modules.read is None else proven_rule(match, pc, arch, modules.read)
        if proven is not None and not agrees(rule, proven, arch):
            rule = proven
        return Found(rule, match.function.fde.signal, match, self, needs_registers(rule, arch))


Generate = Callable[[Module], Union[Section, None]]
"""Makes the SFrame section of a module that has none; ``None``: there is nothing to make it from.  It raises
:class:`SFrameError`."""


class Found(NamedTuple):
    """SFrame or run-time unwind info has a rule for the address."""

    rule: UnwindRule
    """The rule to use: the row's, or where :attr:`is_refuted` the one that the code proves."""
    signal: bool
    """The function is a signal trampoline: the pc of its caller is not a return address."""
    match: Match | RunTimeMatch | CodeMatch
    module: Module
    needs_registers: bool
    """The rule needs registers besides SP and FP; see :func:`sframe_unwind.unwind.step.needs_registers`."""

    @property
    def is_refuted(self) -> bool:
        """The code of a PLT stub refutes the row; see :mod:`sframe_unwind.unwind.stub_rows`."""
        return self.rule is not self.match.rule


class NoData(NamedTuple):
    """There is no rule for the address.  This does not mean that the frame is the outermost one."""

    reason: str
    module: Module | None
    """The module that contains the address; ``None``: no module does."""


class Unusable(NamedTuple):
    """There is unwind data for the address, but it is corrupt or cannot be read."""

    error: SFrameError
    module: Module


LookupResult = Union[Found, NoData, Unusable]


class ModuleSource(Protocol):
    """Modules that the process adds and removes while it runs, such as code that it registers at run time."""

    def refresh(self) -> bool:
        """Read the modules again after the process has run; return whether they changed."""

    def find(self, pc: int) -> Module | None:
        """Return the module that contains the code at an address, or ``None``."""

    def name(self, pc: int) -> str:
        """Return the name that the process registered for the code at an address; empty: there is none."""

    def describe(self) -> list[str]:
        """Return the lines of ``sframe status`` about these modules."""


class Modules:
    """The modules of one process at one time.  When the process loads or unloads a module, make a new object.

    :param arch: architecture of the process; SFrame data of another architecture is unusable.
    :param modules: the modules, in any order.
    :param report: called with one line for the user, once for each module with unusable data.
    :param discover: called when no module contains an address, returns further modules; see :meth:`look_again`.
    :param run_time: the code that the process registered.  Its modules take precedence over ``modules``, because
        run-time code can lie in the data segment of a module.
    :param generate: makes the sections of modules that have none.
    :param read: reads the memory of the process, to check rows against code; ``None``: all rows are believed.
    """

    def __init__(
        self,
        arch: Arch,
        modules: Iterable[Module],
        report: Callable[[str], None] | None = None,
        discover: Callable[[], Iterable[Module]] | None = None,
        run_time: ModuleSource | None = None,
        generate: Generate | None = None,
        read: ReadMemory | None = None,
    ) -> None:
        self.arch = arch
        self.read = read
        self._generate = generate
        self.run_time = run_time
        if run_time is not None:
            run_time.refresh()
        self.results = AddressCache(self._look_up)
        """Maps a lookup address to its :data:`LookupResult`; computed on first access."""
        self._agreements = Agreements(self.cfi_rule, arch)
        self._report = report
        self._reported: set[Module | str] = set()
        self._discover = discover
        self._given = tuple(modules)
        self._found: dict[object, Module] = {}
        self._may_discover = discover is not None
        self._take(self._given)

    def _take(self, modules: tuple[Module, ...]) -> None:
        self.modules = modules
        self._ranges = RangeMap(self._prepared(modules))

    def _prepared(self, modules: Iterable[Module]) -> Iterator[tuple[int, int, Module]]:
        for module in modules:
            module.generate = self._generate
            yield from ((start, end, module) for start, end in module.ranges)

    def add(self, modules: Iterable[Module]) -> None:
        """Add modules that the process has loaded where no module was; the results for other addresses are kept."""
        added = tuple(modules)
        self._given += added
        self.modules = (*self._given, *self._found.values())
        self._ranges.add(self._prepared(added))
        for pc in [pc for pc, result in self.results.items() if isinstance(result, NoData) and result.module is None]:
            del self.results[pc]
        self._agreements.forget_differences()

    def remove(self, modules: Container[Module]) -> None:
        """Remove modules that the process has unloaded; the results for other addresses are kept."""
        self._given = tuple(module for module in self._given if module not in modules)
        self._found = {key: module for key, module in self._found.items() if module not in modules}
        self.modules = (*self._given, *self._found.values())
        for cache in (self.results, self._agreements.known):
            for pc in [pc for pc in cache if self._ranges.get(pc) in modules]:
                del cache[pc]
        self._ranges.remove(modules)

    def find(self, pc: int) -> Module | None:
        """Return the module that contains the code at an address, or ``None``."""
        module = self.run_time.find(pc) if self.run_time is not None else None
        if module is not None:
            return module
        module = self._ranges.get(pc)
        if module is not None or not self._may_discover or self._discover is None:
            return module
        self._may_discover = False
        self._take(self._given)
        found = {(module.name, module.ranges): module for module in self._discover()}
        # Keep the object of a module that was found before: it holds opened sections.
        self._found = {key: self._found.get(key, module) for key, module in found.items() if not self._overlaps(module)}
        self._take((*self._given, *self._found.values()))
        self._forget()
        return self.find(pc)

    def _forget(self) -> None:
        """Empty the caches: addresses may belong to other modules now."""
        self.results.clear()
        self._agreements.known.clear()

    def _overlaps(self, module: Module) -> bool:
        """Return whether a module overlaps a known one: it is the same one, perhaps with another start address."""
        return any(self._ranges.overlapping(start, end) for start, end in module.ranges)

    def look_again(self) -> bool:
        """Update the modules after the process has run: run-time code now, the others at the next miss.

        Return whether the caches were emptied.  The caller must then drop what it derived from lookup results.
        """
        changed = self.run_time is not None and self.run_time.refresh()
        if self._discover is not None and not self._may_discover:
            self._may_discover = changed = True
            self._take(self._given)
        if changed:
            self._forget()
        return changed

    def has_cfi(self, pc: int) -> bool:
        """Return whether the module that contains an address has DWARF CFI for it."""
        module = self.find(pc)
        return module is not None and module.has_cfi(pc)

    def cfi_rule(self, pc: int) -> UnwindRule | None:
        """Return the DWARF CFI rule for an address; see :meth:`Module.cfi_rule`."""
        module = self.find(pc)
        return None if module is None else module.cfi_rule(pc)

    def cfi_match(self, pc: int) -> CfiMatch | None:
        """Return the DWARF CFI for an address; ``None``: there is none.

        :raises SFrameError: the CFI cannot be read, or an :class:`UnwindRule` cannot express it.
        """
        module = self.find(pc)
        return None if module is None else module.cfi_match(pc)

    def cfi_agrees(self, pc: int, rule: UnwindRule) -> bool:
        """Return whether the CFI for an address gives the same CFA, return address and frame pointer as a rule.

        :param rule: the rule of SFrame for this address.
        """
        return self._agreements.agrees(pc, rule)

    def _look_up(self, pc: int) -> LookupResult:
        module = self.find(pc)
        if module is None:
            return NoData("no module has code there", None)
        try:
            return module.look_up(pc, self)
        except SFrameError as error:
            line = f"{module.name}: {module.kind} not used: {error}"
            # Compare the lines too: a module that is loaded again is another object.
            if self._report and not {module, line} & self._reported:
                self._reported |= {module, line}
                self._report(line)
            return Unusable(error, module)
