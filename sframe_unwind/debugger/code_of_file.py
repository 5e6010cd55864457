"""The machine code of a module, interpreted from the module's file."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Callable

from sframe_unwind.address import lookup_address
from sframe_unwind.arch import Arch
from sframe_unwind.code.rows.at_address import CodeRow, CodeRows
from sframe_unwind.code.rows.extents import FoundBy
from sframe_unwind.code.rows.function import Basis
from sframe_unwind.code.rows.stack_words import FrameValues
from sframe_unwind.debugger.debug_files import DebugFile
from sframe_unwind.debugger.elf_files import build_id_of
from sframe_unwind.elf import ElfBinary
from sframe_unwind.elf.constants import PT_LOAD
from sframe_unwind.elf.reader import open_file
from sframe_unwind.elf.symbols import Symbols
from sframe_unwind.errors import MemoryReadError, SFrameError
from sframe_unwind.memory import ReadMemory, WordReader
from sframe_unwind.unwind.code_match import AskedFrame, CodeFunction, CodeMatch, ModuleCode

_FOUND_BY = {
    FoundBy.CFI: "by CFI, which has no rule for it",
    FoundBy.SYMBOL: "by its symbol",
    FoundBy.PLT: "a procedure linkage table",
    FoundBy.CALLED: "called by code to which the entry point or an export leads, or its address is passed on",
    FoundBy.FRAME: "by the frame: its return address follows a direct call of the function",
    FoundBy.POINTER: "by the frame: it is entered through a pointer, and data of the program holds its address",
}
_BASES = {
    Basis.PROVED: "proved by its instructions",
    Basis.BY_ABI: "proved by its instructions, if the functions that it calls keep to the ABI",
}


def code_of_files(
    files: Iterable[DebugFile], find_bias: Callable[[], int], arch: Arch, read: ReadMemory
) -> ModuleCode | None:
    """Return the code of a module; ``None``: no file that can be used has it.

    :param files: the module's own file, and perhaps a separate debug file, whose symbols count.
    :param find_bias: returns the address in the process minus the address in the file; raises :class:`SFrameError`.
    :param read: reads the memory of the process.
    """
    symbols = None
    for file in files:
        with suppress(SFrameError):  # the file is missing, damaged, or another one than the debugger has read
            binary = ElfBinary(open_file(file.path), file.path)
            if binary.arch is not arch or (file.has_build_id() and build_id_of(binary) != file.build_id):
                continue
            if not binary.is_debug_file:
                return CodeOfFile(binary, symbols, find_bias(), read)
            symbols = symbols or binary.symbols
    return None


class CodeOfFile:
    """The code of a file, at the addresses of a process; see :class:`sframe_unwind.unwind.code_match.ModuleCode`.

    A function counts only if the process has the same bytes.

    :param symbols: the symbols of the separate debug file; ``None``: those of the file.
    :param bias: address in the process minus address in the file.
    :param read: reads the memory of the process.
    """

    def __init__(self, binary: ElfBinary, symbols: Symbols | None, bias: int, read: ReadMemory) -> None:
        self._rows = CodeRows(binary.name, symbols)
        self._binary = binary
        self._bias = bias
        self._read = read
        self._is_loaded: dict[tuple[int, int], bool] = {}

    def match(self, pc: int) -> CodeMatch | None:
        """Return the rule for a lookup address; ``None``: the code does not tell."""
        return self._placed(self._rows.at(pc - self._bias))

    def learn(self, frame: AskedFrame) -> CodeMatch | None:
        """Return the rule for a frame that shows where its function begins; ``None``: it does not."""
        values = FrameValues(
            sp=frame.sp,
            fp=frame.fp,
            read_word=WordReader(self._read, self._binary.arch.byteorder),
            read=self._read,
            bias=self._bias,
            read_register=frame.read_register,
        )
        address = lookup_address(frame.pc, frame.interrupted)
        return self._placed(self._rows.of_frame(address - self._bias, values))

    def _placed(self, row: CodeRow | None) -> CodeMatch | None:
        if row is None or not self._has(row.start, row.end):
            return None
        function = CodeFunction(row.start + self._bias, row.end + self._bias, _FOUND_BY[row.found_by])
        return CodeMatch(function, row.rule, _BASES[row.basis])

    def _has(self, start: int, end: int) -> bool:
        """Return whether the process has the code of the file; if it cannot be read, nothing shows another one."""
        known = self._is_loaded.get((start, end))
        if known is None:
            try:
                known = self._read(start + self._bias, end - start) == self._of_file(start, end)
            except MemoryReadError:
                known = True
            self._is_loaded[start, end] = known
        return known

    def _of_file(self, start: int, end: int) -> bytes | None:
        for segment in self._binary.segments:
            if segment.type == PT_LOAD and segment.address <= start and end <= segment.end:
                return self._binary.read(segment.offset + start - segment.address, end - start)
        return None
