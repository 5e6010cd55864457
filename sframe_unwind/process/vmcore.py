"""The crash dump of a Linux kernel as a source of stacks: its tasks, and its modules' unwind data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Callable, Protocol

from sframe_unwind.address import Range, find_range
from sframe_unwind.arch import Arch, of_elf
from sframe_unwind.cfi.section import CfiMatch, CfiSection, PlacedCfi, SectionData
from sframe_unwind.elf import opened
from sframe_unwind.elf.constants import SHF_EXECINSTR
from sframe_unwind.errors import FileError, KernelError
from sframe_unwind.kernel.entry_code import find_places
from sframe_unwind.kernel.linux import Kernel
from sframe_unwind.kernel.orc_of_kernel import find_orc
from sframe_unwind.kernel.tasks import TaskList
from sframe_unwind.kernel.types import Type, Types
from sframe_unwind.memory import lazy_memory
from sframe_unwind.named_tuple import NamedTuple
from sframe_unwind.process.base import Thread
from sframe_unwind.process.by_code import rows_of_file
from sframe_unwind.process.cfi import ObjectCfi
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.live_kernel import KCORE
from sframe_unwind.process.stacks import walk
from sframe_unwind.process.target import PlacedCode, SymbolMatch, UnwoundThread
from sframe_unwind.sframe.section import Section
from sframe_unwind.source.debug_info import Place
from sframe_unwind.unwind.modules import Module, Modules
from sframe_unwind.unwind.saved_context import from_registers

_SFRAME = ".sframe"


class LoadedModule(NamedTuple):
    """A module of the kernel."""

    name: str
    path: str
    """Path of its file; empty: the file was not found."""
    addresses: Mapping[str, int]
    """The addresses of its sections in memory, by name."""
    ranges: tuple[Range, ...]
    """The ranges of memory in which it is loaded."""


class KernelProgram(Protocol):
    """A reader of dumps; :class:`sframe_unwind.process.drgn_kernel.DrgnKernel` describes each method."""

    def read(self, address: int, size: int) -> bytes: ...

    def symbol(self, name: str) -> int | None: ...

    def structure(self, tag: str) -> Type | None: ...

    def function_at(self, address: int) -> SymbolMatch | None: ...

    def places(self, address: int) -> list[Place]: ...

    def running_registers(self, task: int, arch: Arch) -> dict[int, int]: ...

    @property
    def main_file(self) -> tuple[str, int] | None: ...

    def modules(self) -> Iterable[LoadedModule]: ...


class KernelObject:
    """The kernel, or one of its modules.

    :param file: its file, which has the sizes of the sections; ``None``: it was not found.
    :param ranges: the ranges of memory in which a module is loaded, which are used if there is no file.
    :param addresses: the addresses of the sections in memory, by name.
    :param bias: the number that is subtracted from an address to show it: the distance by which the kernel was moved,
        or the address of the module.
    :param lines: whether source lines are wanted.
    """

    def __init__(
        self,
        name: str,
        file: ElfFile | None,
        addresses: Mapping[str, int],
        bias: int,
        program: KernelProgram,
        lines: bool,
        ranges: Sequence[Range] = (),
    ) -> None:
        self.name = name
        self.bias = bias
        self.file = file
        self._addresses = addresses
        self._program = program
        self._lines = lines
        self._ranges = ranges
        self.module = Module(name, self._code(), self._sframe)

    @property
    def build_id(self) -> str:
        """The build ID of the file in hexadecimal digits, which is also that of the dump; empty: not known."""
        return self.file.build_id if self.file is not None else ""

    def function_at(self, pc: int) -> SymbolMatch | None:
        """Return the function that contains an address; ``None``: no symbol covers it."""
        return self._program.function_at(pc)

    def places(self, pc: int) -> list[Place]:
        """Return the inlined functions and the function at an address, innermost first, with their lines."""
        return self._program.places(pc) if self._lines else []

    @cached_property
    def code_rows(self) -> PlacedCode | None:
        """The rows that its machine code gives; ``None``: see :func:`sframe_unwind.process.by_code.rows_of_file`."""
        rows = rows_of_file(self.file, self.file.symbols) if self.file is not None else None
        return None if rows is None else PlacedCode(rows, self.bias)

    def _code(self) -> list[tuple[int, int]]:
        if self.file is None:
            return list(self._ranges)
        with opened(self.file.path) as binary:
            code = [section for section in binary.sections if section.flags & SHF_EXECINSTR and section.size]
        placed = [(self._addresses[one.name], one.size) for one in code if one.name in self._addresses]
        return [(start, start + size) for start, size in placed]

    def _sframe(self) -> Section | None:
        """Open the section in memory, where the kernel has relocated a module's."""
        start = self._addresses.get(_SFRAME)
        if start is None:
            return None
        if self.file is not None:
            with opened(self.file.path) as binary:
                section = binary.named(_SFRAME)  # a debug file has its header only
            if section is not None:
                return Section(lazy_memory(self._program.read, start, section.size), start)
        found = find_range(self._ranges, start)
        if found is None:
            return None
        return Section(lazy_memory(self._program.read, start, found[1] - start), start, size_known=False)


class KernelCode:
    """The code of a kernel and its modules: a :class:`sframe_unwind.process.target.Code`.

    :param main: the kernel itself.
    :param report: called with one line for the user, once for each object with unusable SFrame data.
    """

    def __init__(
        self, arch: Arch, main: KernelObject, others: Iterable[KernelObject], report: Callable[[str], None]
    ) -> None:
        self.all = (main, *others)
        self.modules = Modules(arch, [found.module for found in self.all], report)
        self._by_module = {found.module: found for found in self.all}
        self._arch = arch
        self._main = main
        self._cfi = ObjectCfi(lambda: None, self._debug_frame)

    def find(self, pc: int) -> KernelObject | None:
        """Return the kernel or the module that contains the code at an address, or ``None``."""
        module = self.modules.find(pc)
        return self._by_module.get(module) if module else None

    def find_cfi(self, pc: int) -> CfiMatch | None:
        """Return the kernel's CFI for a lookup address.  The CFI of modules is not read: their files are not linked."""
        return self._cfi.at(pc) if self.find(pc) is self._main else None

    def code_rows(self, pc: int) -> PlacedCode | None:
        """Return the rows that the kernel's machine code at a lookup address gives.

        Modules have none: their files are not linked.
        """
        return self._main.code_rows if self.find(pc) is self._main else None

    def prefers_cfi(self, pc: int) -> bool:  # noqa: ARG002
        """Return ``False``: the stacks of kernels are shown as an SFrame unwinder finds them."""
        return False

    def is_code(self, pc: int) -> bool:
        """Return whether an address is in the code of the kernel or a module."""
        return self.modules.find(pc) is not None

    def may_be_trampoline(self, pc: int) -> bool:  # noqa: ARG002
        """Return ``False``: kernels get no signals."""
        return False

    def run_time_name(self, pc: int) -> str:  # noqa: ARG002
        """Return nothing: run-time code of kernels has no registered names."""
        return ""

    def why_no_data(self, pc: int) -> str:
        """Return why there is no unwind data for a lookup address; empty: nothing more is known."""
        return "" if self.find(pc) is not None else "the address is in no code of the kernel or of a module with a file"

    def _debug_frame(self) -> PlacedCfi | None:
        file = self._main.file
        if file is None or not file.debug_frame:
            return None
        section = CfiSection(SectionData(0, file.debug_frame), None, self._arch, debug_frame=True)
        return PlacedCfi(section, self._main.bias)


class VmcoreTarget:
    """A :class:`sframe_unwind.process.target.Target`: the tasks of a kernel.

    :param path: path of the dump, for messages.
    :param report: called with one line for each message to the user.
    :param lines: whether source lines are wanted.
    :raises SFrameError: it has no kernel of a known architecture, or the file is not the kernel's.
    """

    def __init__(self, path: str, program: KernelProgram, report: Callable[[str], None], lines: bool = True) -> None:
        found = program.main_file
        if found is None:
            raise FileError(f"{path}: the file given with --exe is not this kernel's, or has no debug information")
        file, bias = ElfFile(found[0]), found[1]
        arch = of_elf(*file.machine)
        if arch is None or arch.linux_kernel is None:
            raise KernelError(
                f"{path}: stacks of Linux kernels on {arch.name if arch else file.machine[0]} are not known"
            )
        self.arch = arch
        self.read = program.read
        self.missing: list[str] = []
        """The missing files, one line each; empty: nothing is missing."""
        addresses = {name: address + bias for name, (address, _) in file.sections.items()}
        main = KernelObject(name=file.path, file=file, addresses=addresses, bias=bias, program=program, lines=lines)
        self.code = KernelCode(arch, main, self._modules(path, program, lines), report)

        # From the file: the kernel frees its initial code, in which the stack of an idle task ends.
        def from_file(address: int, size: int) -> bytes:
            return file.loaded(address, size, bias)

        places = find_places(arch, program.symbol, from_file)
        orc = find_orc(program.symbol, from_file)
        types = Types(program.structure)
        self._kernel = Kernel(
            arch=arch,
            facts=arch.linux_kernel,
            places=places,
            types=types,
            symbol=program.symbol,
            read=program.read,
            orc=orc,
        )
        live = path == KCORE
        self._no_registers = (
            "it runs, with its registers in a processor" if live else "its registers are not in the dump"
        )
        self._interrupted: set[int] = set()
        self.threads = tuple(self._threads(program))

    def unwind(self, thread: Thread) -> UnwoundThread:
        """Return the frames of a task."""
        if not thread.registers:
            return UnwoundThread(thread, (), self._no_registers)
        interrupted = thread.id in self._interrupted
        return walk(
            thread=thread, arch=self.arch, code=self.code, read=self.read, interrupted=interrupted, kernel=self._kernel
        )

    def _modules(self, path: str, program: KernelProgram, lines: bool) -> list[KernelObject]:
        found, without_file = [], []
        for module in program.modules():
            if not module.path:
                without_file.append(module.name)
            if module.addresses:
                file, base = ElfFile(module.path) if module.path else None, min(module.addresses.values())
                ranges = sorted(module.ranges)
                found.append(
                    KernelObject(
                        name=module.name,
                        file=file,
                        addresses=module.addresses,
                        bias=base,
                        program=program,
                        lines=lines,
                        ranges=ranges,
                    )
                )
        if without_file:
            self.missing.append(f"{path}: no file of the modules {', '.join(without_file)} (--modules FOLDER has them)")
        return found

    def _threads(self, program: KernelProgram) -> Iterator[Thread]:
        for task in TaskList(self._kernel):
            registers, state = task.registers, task.state
            if task.on_cpu:
                registers, state = program.running_registers(task.address, self.arch), f"{state}, on a processor"
            if task.on_cpu or from_registers(self.arch, registers, self.read).interrupted:
                self._interrupted.add(task.pid)
            yield Thread(task.pid, task.command, state, registers)
