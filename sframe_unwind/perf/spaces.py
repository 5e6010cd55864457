"""The address spaces of the processes in a recording, as they change over time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from sframe_unwind.address import RangeMap
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.section import CfiMatch
from sframe_unwind.debugger.code_judge import ProcessCode, rule_judge
from sframe_unwind.errors import MemoryReadError
from sframe_unwind.perf.code_file import CodeFile, open_code_file
from sframe_unwind.perf.mappings import Mapping
from sframe_unwind.perf.tasks import Comm, Exit, Fork
from sframe_unwind.perf.unwind_data import UnwindData
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import Files
from sframe_unwind.process.target import PlacedCode
from sframe_unwind.unwind import signal_frame
from sframe_unwind.unwind.modules import Modules

NO_CODE = "no code is mapped here"

_Mappings = tuple[Mapping, ...]
_MOST_SPACES = 200
_MOST_JUDGED = 200
"""Maximum number of addresses at which the machine code is asked: the function of each takes up to a second."""


class Space:
    """The mapped files of one process, or of several with the same mappings, at one time: a
    :class:`sframe_unwind.process.target.UnwindableCode`.

    :param found: each mapping of code with its file, or ``None`` and the reason why there is none.
    """

    def __init__(self, arch: Arch, found: list[tuple[Mapping, CodeFile | None, str]]) -> None:
        self._arch = arch
        self._mappings = RangeMap((mapping.start, mapping.end, (mapping, why)) for mapping, _, why in found)
        self.files = tuple({id(file): file for _, file, _ in found if file is not None}.values())
        self._code = RangeMap((start, end, file) for file in self.files for start, end in file.ranges)
        segments = ((s.address, s.end, file) for file in self.files for s in file.image.segments)
        self._segments = RangeMap(segments)
        self._trampolines: dict[int, bool] = {}

    @cached_property
    def sframe(self) -> Modules:
        """The modules with their SFrame as this project reads it."""
        return Modules(self._arch, [file.sframe for file in self.files], read=self.read)

    @cached_property
    def by_sframe(self) -> UnwindData:
        """SFrame as this project reads it, and signal frames."""
        return UnwindData(self._arch, self.sframe, None, self.may_be_trampoline)

    @cached_property
    def by_sframe_of_linux(self) -> UnwindData:
        """SFrame as Linux would load it, and nothing else."""
        modules = Modules(self._arch, [file.sframe_linux for file in self.files])
        return UnwindData(self._arch, modules, None, None)

    @cached_property
    def by_sframe_then_cfi(self) -> UnwindData:
        """SFrame, DWARF CFI if there is no row or the row is not to be believed, and signal frames."""
        judge = rule_judge(ProcessCode(self.sframe, self.read, self.symbol_at), most=_MOST_JUDGED)
        return UnwindData(self._arch, self.sframe, self.find_cfi, self.may_be_trampoline, judge=judge)

    @cached_property
    def by_sframe_then_frame_pointers(self) -> UnwindData:
        """SFrame, frame pointers if there is no row, and signal frames."""
        return UnwindData(self._arch, self.sframe, None, self.may_be_trampoline, with_frame_pointers=True)

    @cached_property
    def by_sframe_then_code(self) -> UnwindData:
        """SFrame, the machine code if there is no row, and signal frames."""
        return UnwindData(self._arch, self.sframe, None, self.may_be_trampoline, with_code=True)

    @cached_property
    def by_code(self) -> UnwindData:
        """The machine code and signal frames."""
        return UnwindData(self._arch, Modules(self._arch, ()), None, self.may_be_trampoline, with_code=True)

    @cached_property
    def by_cfi_then_frame_pointers(self) -> UnwindData:
        """DWARF CFI, frame pointers if there is none, and signal frames."""
        return UnwindData(
            self._arch, Modules(self._arch, ()), self.find_cfi, self.may_be_trampoline, with_frame_pointers=True
        )

    @cached_property
    def by_cfi(self) -> UnwindData:
        """DWARF CFI and signal frames."""
        return UnwindData(self._arch, Modules(self._arch, ()), self.find_cfi, self.may_be_trampoline)

    def find(self, pc: int) -> CodeFile | None:
        """Return the file with the code at an address, or ``None``."""
        return self._code.get(pc)

    def symbol_at(self, address: int) -> str:
        """Return the name of the function that begins at an address, in the linker's spelling; empty: none does."""
        file = self.find(address)
        match = None if file is None else file.loaded.function_at(address)
        return match.function if match is not None and not match.offset else ""

    def is_code(self, pc: int) -> bool:
        """Return whether a file has the code at an address."""
        return self._code.contains(pc)

    def find_cfi(self, pc: int) -> CfiMatch | None:
        """Return the CFI for a lookup address, or ``None``.

        :raises SFrameError: the CFI is malformed.
        """
        file = self._code.get(pc)
        return None if file is None else file.loaded.cfi.at(pc)

    def code_rows(self, pc: int) -> PlacedCode | None:
        """Return the rows that the machine code at a lookup address gives; ``None``: it gives none."""
        file = self._code.get(pc)
        return None if file is None else file.loaded.code_rows

    def place(self, pc: int) -> tuple[str, str]:
        """Return the path that is mapped at an address, and why there is no file for it; empty: there is one."""
        found = self._mappings.get(pc)
        return (found[0].path, found[1]) if found is not None else ("", NO_CODE)

    def offset(self, address: int) -> int:
        """Return the offset in its file of the code at an address; if no file is mapped there, the address itself."""
        found = self._mappings.get(address)
        return address if found is None else address - found[0].start + found[0].offset

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of the files.

        :raises MemoryReadError: no file has them.
        """
        file = self._segments.get(address)
        if file is None:
            raise MemoryReadError(address, size)
        return file.read(address, size)

    def may_be_trampoline(self, pc: int) -> bool:
        """Return whether the code at an address can be a signal trampoline; in files, the answer is certain."""
        if pc not in self._trampolines:
            known = self._code.get(pc) is not None
            self._trampolines[pc] = not known or signal_frame.is_trampoline(self._arch, self.read, pc)
        return self._trampolines[pc]


class Spaces:
    """All processes of a recording.

    :param build_ids: build ID of each file by its path, for mappings without one.
    :param convert: make SFrame from the CFI of files without SFrame.
    :param vdso: finds the vDSO by its build ID, if no folder has it.
    """

    def __init__(
        self,
        arch: Arch,
        files: Files,
        build_ids: dict[str, str],
        convert: bool,
        vdso: Callable[[str], ElfFile | None] = lambda _: None,
    ) -> None:
        self._arch = arch
        self._vdso = vdso
        self._files = files
        self._build_ids = build_ids
        self._convert = convert
        self._mappings: dict[int, _Mappings] = {}
        self._current: dict[int, Space] = {}
        """The spaces of processes whose mappings have not changed since a sample; finding one by mappings is slow."""
        self._names: dict[int, str] = {}
        self._spaces: dict[_Mappings, Space] = {}
        self._opened: dict[Mapping, tuple[CodeFile | None, str]] = {}
        self._by_bias: dict[tuple[str, str, int], CodeFile] = {}

    def take(self, event: Mapping | Comm | Fork | Exit) -> None:
        """Update a process according to a record."""
        if not isinstance(event, Exit):
            self._current.pop(event.pid, None)
        if isinstance(event, Mapping):
            kept = tuple(piece for old in self._mappings.get(event.pid, ()) for piece in _around(old, event))
            added = (event._replace(pid=0),) if event.executable else ()
            self._mappings[event.pid] = kept + added
        elif isinstance(event, Comm):
            self._names[event.tid] = event.name
            if event.is_exec:
                self._mappings[event.pid] = ()
        elif isinstance(event, Fork):
            self._names.setdefault(event.tid, self._names.get(event.parent_tid, ""))
            if event.pid != event.parent_pid:
                self._mappings[event.pid] = self._mappings.get(event.parent_pid, ())

    def name(self, tid: int) -> str:
        """Return the name of a thread; empty: it is not known."""
        return self._names.get(tid, "")

    def of(self, pid: int) -> Space:
        """Return the present address space of a process."""
        space = self._current.get(pid)
        if space is None:
            space = self._current[pid] = self._find(self._mappings.get(pid, ()))
        return space

    def _find(self, mappings: _Mappings) -> Space:
        if mappings not in self._spaces:
            if len(self._spaces) >= _MOST_SPACES:
                self._spaces.clear()
                self._current.clear()
            self._spaces[mappings] = Space(self._arch, [(one, *self._open(one)) for one in mappings])
        return self._spaces[mappings]

    def _open(self, mapping: Mapping) -> tuple[CodeFile | None, str]:
        if mapping not in self._opened:
            build_id = mapping.build_id or self._build_ids.get(mapping.path, "")
            file, why = open_code_file(
                mapping=mapping,
                build_id=build_id,
                arch=self._arch,
                files=self._files,
                convert=self._convert,
                vdso=self._vdso,
            )
            if file is not None:  # a file with several mappings of code is one
                file = self._by_bias.setdefault((mapping.path, file.build_id, file.bias), file)
            self._opened[mapping] = file, why
        return self._opened[mapping]


def _around(old: Mapping, new: Mapping) -> list[Mapping]:
    """Return the remaining parts of a mapping after another one was mapped over it."""
    if new.end <= old.start or old.end <= new.start:
        return [old]
    left = []
    if old.start < new.start:
        left.append(old._replace(end=new.start))
    if new.end < old.end:
        left.append(old._replace(start=new.end, offset=old.offset + new.end - old.start))
    return left
