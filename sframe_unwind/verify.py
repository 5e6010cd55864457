"""SFrame against the DWARF CFI of the same file: at every address where either changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sframe_unwind import elf
from sframe_unwind.abi import Abi
from sframe_unwind.dwarf import Cfi, CfiFunction
from sframe_unwind.dwarf_expression import NotAPlaceError
from sframe_unwind.errors import FileError, SFrameError
from sframe_unwind.format.constants import PcType
from sframe_unwind.notation import place_words
from sframe_unwind.rule import CFA, Place, Rule
from sframe_unwind.section import Section
from sframe_unwind.symbols import Symbols, read_symbols
from sframe_unwind.table import Function


class Disagreement(NamedTuple):
    """One value on which the two differ at one address."""

    address: int
    function: str
    """Empty where no symbol says."""
    what: str
    """``cfa``, ``ra`` or ``fp``."""
    sframe: str
    dwarf: str


class OneSided(NamedTuple):
    """A function that only one of the two describes."""

    start: int
    function: str
    reason: str
    """Why, where that can be told."""


class Verdict(NamedTuple):
    """What the comparison of one file found."""

    file: str
    both: int
    sframe_only: tuple[OneSided, ...]
    dwarf_only: tuple[OneSided, ...]
    addresses_compared: int
    disagreements: tuple[Disagreement, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the file as ``verify --json`` has it."""
        return {
            "file": self.file,
            "functions": {
                "both": self.both,
                "sframe_only": len(self.sframe_only),
                "dwarf_only": len(self.dwarf_only),
            },
            "addresses_compared": self.addresses_compared,
            "disagreements": [disagreement._asdict() for disagreement in self.disagreements],
        }


def verify(path: str) -> Verdict:
    """Compare the SFrame of a linked file with its DWARF CFI.

    :raises FileError: the file cannot be read, has no CFI, or is an object file, where all functions start at 0.
    :raises NoSFrameError: it has no SFrame section.
    :raises FormatError: SFrame or CFI is malformed.
    """
    sections = elf.load(path, lazy=False)
    abi = next((section.abi for section in sections if section.abi), None)
    with elf.opened(path) as file:
        if file["e_type"] == "ET_REL":
            raise FileError(f"{path}: an object file, whose functions have no addresses yet: verify the linked file")
        if abi is None:
            return Verdict(path, 0, (), (), 0, ())
        try:
            cfi = Cfi(file, abi)
        except SFrameError as error:
            raise FileError(f"{path}: DWARF CFI: {error}") from error
        if not cfi.ranges():
            raise FileError(f"{path}: no DWARF CFI to compare with")
        return _Comparison(path, sections, abi, cfi, read_symbols(path)).verdict()


class _Comparison:
    def __init__(self, path: str, sections: list[Section], abi: Abi, cfi: Cfi, symbols: Symbols) -> None:
        self._path = path
        self._sections = sections
        self._abi = abi
        self._cfi = cfi
        self._symbols = symbols
        self._compared = 0
        self._disagreements: list[Disagreement] = []

    def verdict(self) -> Verdict:
        """Compare everything."""
        both, sframe_only = 0, []
        for section in self._sections:
            for function in section.functions():
                if self._compare(section, function):
                    both += 1
                elif function.fde.size:
                    sframe_only.append(OneSided(function.start, self._name(function.start), "no CFI"))
        dwarf_only = tuple(
            OneSided(start, self._name(start), self._reason(start))
            for start, end in self._cfi.ranges()
            if not any(section.find(pc) for section in self._sections for pc in (start, end - 1))
        )
        return Verdict(
            self._path, both, tuple(sframe_only), dwarf_only, self._compared, tuple(self._disagreements)
        )

    def _compare(self, section: Section, function: Function) -> bool:
        """Compare one function; return whether there is CFI for any of it."""
        found = False
        for pc in self._addresses(function):
            described = self._cfi.function_at(pc)
            if described is None:
                continue
            found = True
            match = section.lookup(pc)
            if match is not None and match.function == function:
                self._compared += 1
                self._compare_at(pc, match.rule, described)
        return found

    def _addresses(self, function: Function) -> list[int]:
        """Return the addresses of a function at which a row of either begins."""
        starts, _ = function.table.rows(function)
        size = function.fde.repetition_size if function.fde.pc_type is PcType.MASK else max(function.fde.size, 1)
        changes = {block + start for block in range(function.start, function.end, size) for start in starts}
        changes.add(function.start)
        pc = function.start
        while pc < function.end:
            described = self._cfi.function_at(pc)
            if described is None:
                break
            changes.update(described.starts)
            pc = described.end
        return sorted(pc for pc in changes if function.start <= pc < function.end)

    def _compare_at(self, pc: int, sframe: Rule, described: CfiFunction) -> None:
        dwarf: Rule | str
        try:
            dwarf = self._cfi.rule(described.row_at(pc), pc)
        except NotAPlaceError as error:
            dwarf = f"computed: {error}"
        for what, said, expected in self._differences(sframe, dwarf):
            self._disagreements.append(Disagreement(pc, self._name(pc), what, said, expected))

    def _differences(self, sframe: Rule, dwarf: Rule | str) -> Iterator[tuple[str, str, str]]:
        if isinstance(dwarf, str):
            yield "cfa", self._place(sframe.cfa), dwarf
            return
        if sframe.ra_undefined or dwarf.ra_undefined:
            if sframe.ra_undefined != dwarf.ra_undefined:
                yield "ra", self._return_address(sframe), self._return_address(dwarf)
            return
        if sframe.cfa != dwarf.cfa:
            yield "cfa", self._place(sframe.cfa), self._place(dwarf.cfa)
        if (sframe.ra, sframe.ra_signed) != (dwarf.ra, dwarf.ra_signed):
            yield "ra", self._return_address(sframe), self._return_address(dwarf)
        if sframe.fp != dwarf.fp:
            yield "fp", self._place(sframe.fp), self._place(dwarf.fp)

    def _return_address(self, rule: Rule) -> str:
        if rule.ra_undefined:
            return "undefined"
        return self._place(rule.ra) + (", signed" if rule.ra_signed else "")

    def _place(self, place: Place | None) -> str:
        return "unchanged" if place is None else place_words(place, self._abi)

    def _name(self, pc: int) -> str:
        return self._symbols.name(pc) or ""

    def _reason(self, start: int) -> str:
        """Return what in a function's CFI SFrame has no words for."""
        version = max(table.header.version for section in self._sections for table in section.tables)
        described = self._cfi.function_at(start)
        if described is None:
            return ""
        if described.signal and version < 3:
            return f"a signal trampoline, which version {version} cannot mark"
        for pc, row in zip(described.starts, described.rows):
            try:
                rule = self._cfi.rule(row, pc)
            except NotAPlaceError as error:
                return f"computed: {error}"
            cfa = rule.cfa
            if cfa is None or version >= 3:
                continue
            if cfa.in_memory or cfa.base not in (self._abi.sp, self._abi.fp):
                return f"CFA {place_words(cfa, self._abi)}, for which version {version} has no words"
            if any(place is not None and not (place.base == CFA and place.in_memory) for place in (rule.ra, rule.fp)):
                return f"a value in a register, for which version {version} has no words"
        return ""
