"""SFrame and DWARF CFI of a file against its machine code."""

from __future__ import annotations

from contextlib import suppress

from elftools.elf.elffile import ELFFile

from sframe_unwind import elf
from sframe_unwind.code.checking import Checker
from sframe_unwind.code.elf_image import exception_tables, image_of
from sframe_unwind.code.findings import DWARF, SFRAME, CodeVerdict
from sframe_unwind.code.interpretation import Interpreter
from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import MACHINES
from sframe_unwind.code.ranges import CodeRanges
from sframe_unwind.code.tables import RuleTable
from sframe_unwind.code.whole_file import Progress, check_functions
from sframe_unwind.elf.cfi import FileCfi
from sframe_unwind.elf.file import translated
from sframe_unwind.elf.section_addresses import Layout
from sframe_unwind.elf.symbols import Symbols, symbols_of
from sframe_unwind.errors import FileError, NoSFrameError
from sframe_unwind.verify.code_tables import CfiTable, SFrameTable


def check_elf(
    file: ELFFile,
    layout: Layout | None = None,
    symbols: Symbols | None = None,
    wanted: frozenset[int] = frozenset(),
    jobs: int = 1,
    progress: Progress | None = None,
) -> CodeVerdict:
    """Check both tables of an ELF file that is open, or the one that it has.

    :param wanted: addresses whose verdicts are to be part of the result.
    :param jobs: how many processes work.
    :raises FileError: it has neither, or a table cannot be read.
    :raises FormatError: a table is malformed.
    :raises SFrameError: what decodes the code is not installed.
    """
    layout = layout or Layout(file)
    symbols = symbols or symbols_of(file, layout)
    arch = elf.arch_of(file)
    machine = MACHINES[arch.name]
    lifter = Lifter(machine)
    tables: dict[str, RuleTable] = {}
    with suppress(NoSFrameError):
        tables[SFRAME] = SFrameTable(elf.load_from(file, layout=layout))
    with translated("DWARF CFI"):
        cfi = FileCfi(file, arch, layout)
    if cfi.ranges():
        tables[DWARF] = CfiTable(cfi, arch)
    if not tables:
        raise FileError("neither SFrame nor DWARF CFI to check against the code")
    with translated("code"):
        image = image_of(file, machine, layout, symbols)
        landing_pads = exception_tables(file, machine, layout, image)
    ranges = CodeRanges(entry for table in tables.values() for entry in table.ranges())
    interpreter = Interpreter(image, machine, lifter, ranges, landing_pads)
    return check_functions(Checker(interpreter, tables, wanted), jobs, progress)
