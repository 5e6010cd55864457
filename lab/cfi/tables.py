"""Tables of call frame information by three decoders, in one form: this project's, pyelftools' and readelf's.

A table has the rows of one FDE: address to row, and a row has the CFA under ``"cfa"`` and registers by their DWARF
numbers, in readelf's notation: ``c-16`` in memory at CFA - 16, ``v-8`` the value CFA - 8, ``r5`` in a register, ``u``
undefined, ``exp`` and ``vexp`` computed.  Unchanged registers are left out.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, Union

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from sframe_unwind import elf
from sframe_unwind.address import ADDRESS_MASK
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.records import CfiFunction, Records
from sframe_unwind.cfi.row import Expression, Row, Source
from sframe_unwind.unwind_rule import CFA, UNDEFINED, RegisterRule
from tests.hanging import HANG

TableRow = dict[Union[int, str], str]
Table = dict[int, TableRow]
Tables = dict[tuple[int, int], Table]
"""By start and end address of the function; of several FDEs for the same addresses, the last one."""

_DEF_CFA_SF, _GNU_ARGS_SIZE = 0x12, 0x2E
TIMEOUT = HANG


def by_us(path: Path) -> Tables:
    """Decode ``.eh_frame`` and ``.debug_frame`` by this project's code."""
    tables: Tables = {}
    with elf.opened(path) as binary:
        for records in sections(binary):
            problems: list[Any] = []
            for _, fde in records.fdes(True, problems):
                tables[fde.start, fde.end] = _table(fde.decode())
            assert not problems, f"{path}: {problems[0]}"
    return tables


def sections(binary: elf.ElfBinary) -> list[Records]:
    """Return the sections with call frame information of a file."""
    return [
        Records(binary.contents(section), section.address, binary.arch, section.name == ".debug_frame")
        for section in binary.sections
        if section.name in (".eh_frame", ".debug_frame") and section.has_contents
    ]


def _table(function: CfiFunction) -> Table:
    return {function.start + offset: _row(row) for offset, row in zip(function.offsets, function.rows)}


def _row(row: Row) -> TableRow:
    shown: TableRow = {number: _source(source) for number, source in row.registers}
    if isinstance(row.cfa, Expression):
        shown["cfa"] = "exp"
    elif isinstance(row.cfa, RegisterRule):
        shown["cfa"] = f"r{row.cfa.base}{row.cfa.offset:+d}"
    return shown


def _source(source: Source) -> str:
    if isinstance(source, Expression):
        return "exp" if source.read else "vexp"
    if source == UNDEFINED:
        return "u"
    if source.base == CFA:
        return f"{'c' if source.in_memory else 'v'}{source.offset:+d}"
    return f"r{source.base}"


def by_pyelftools(path: Path) -> tuple[Tables, dict[tuple[int, int], str]]:
    """Decode with pyelftools; return also its error for each FDE that is left out because of that error."""
    tables: Tables = {}
    defects: dict[tuple[int, int], str] = {}
    with path.open("rb") as stream:
        info = ELFFile(stream).get_dwarf_info(relocate_dwarf_sections=False)
        entries = info.EH_CFI_entries() if info.has_EH_CFI() else []
        entries += info.CFI_entries() if info.has_CFI() else []
        for entry in entries:
            if isinstance(entry, FDE):
                start = entry["initial_location"] & ADDRESS_MASK
                key = start, start + entry["address_range"]
                defect = _defect(entry)
                if defect:
                    defects[key] = defect
                else:
                    tables[key] = {line["pc"] & ADDRESS_MASK: _line(line) for line in entry.get_decoded().table}
    return tables, defects


def _defect(entry: FDE) -> str:
    """Return the error of pyelftools 0.33 in an FDE; empty: none is known."""
    opcodes = {instruction.opcode for part in (entry.cie, entry) for instruction in part.instructions}
    if _DEF_CFA_SF in opcodes:
        return "DW_CFA_def_cfa_sf: the offset is multiplied by the code alignment factor (callframe.py, line 608)"
    if _GNU_ARGS_SIZE in opcodes:
        return "DW_CFA_GNU_args_size: get_decoded() has no case for it and raises an error (callframe.py, line 673)"
    return ""


def _line(line: dict[Any, Any]) -> TableRow:
    shown: TableRow = {}
    cfa = line["cfa"]
    if cfa.expr is not None:
        shown["cfa"] = "exp"
    elif cfa.reg is not None:
        shown["cfa"] = f"r{cfa.reg}{cfa.offset:+d}"
    kinds = {"UNDEFINED": "u", "EXPRESSION": "exp", "VAL_EXPRESSION": "vexp"}
    for register, rule in line.items():
        if register in ("pc", "cfa") or rule.type == "SAME_VALUE":
            continue
        signs = {"OFFSET": "c", "VAL_OFFSET": "v"}
        if rule.type in signs:
            shown[register] = f"{signs[rule.type]}{rule.arg:+d}"
        else:
            shown[register] = kinds.get(rule.type) or f"r{rule.arg}"
    return shown


_CIE = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ CIE .* ra=(\d+)$")
_FDE = re.compile(r"^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)$")


def by_readelf(readelf: Path, path: Path, arch: Arch) -> Tables:
    """Decode with ``readelf -wF``.  It shows ``u`` for undefined and unchanged registers alike: they are left out."""
    command = [str(readelf), "-W", "--debug-dump=frames-interp,no-follow-links", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    names = {name: number for number, name in arch.register_names.items()}
    names |= {f"v{number}": 64 + number for number in range(32)} if arch.elf_machine == "EM_AARCH64" else {}
    names |= {f"xmm{number}": 17 + number for number in range(16)} if arch.elf_machine == "EM_X86_64" else {}
    cies: dict[str, tuple[int, Table]] = {}
    tables: Tables = {}
    columns: list[int | str] = []
    column, section = 0, ""
    table: Table = {}
    for line in done.stdout.splitlines():
        if line.startswith("Contents of the "):
            section = line
        elif found := _CIE.match(line):
            column, table = int(found[1]), {}
            cies[section + line.split()[0]] = column, table
        elif found := _FDE.match(line):
            column, common = cies[section + found[1]]
            start, end = int(found[2], 16), int(found[3], 16)
            # readelf shows no row for an FDE that adds nothing to its CIE.
            table = tables[start, end] = dict(zip([start], common.values()))
        elif line.startswith("   LOC"):
            known: dict[str, int | str] = {**names, "CFA": "cfa", "ra": column}
            columns = [known[name] for name in line.split()[1:]]
        elif re.match(r"[0-9a-f]{16} ", line):
            fields = re.sub(r" \(\w+\)", "", line).split()  # names of registers, after their numbers
            assert len(fields) == len(columns) + 1, line
            cells = {name: _cell(text, names) for name, text in zip(columns, fields[1:])}
            table[int(fields[0], 16)] = {name: text for name, text in cells.items() if text not in ("u", "s")}
    return tables


def _cell(text: str, names: dict[str, int]) -> str:
    """Return readelf's text for a rule, with numbers in place of the names of registers."""
    name, sign, offset = re.split(r"([+-]|$)", text, maxsplit=1)
    return f"r{names[name]}{sign}{offset}" if name in names else text


def without_undefined(table: Table) -> Table:
    """Return a table in the form in which readelf shows it."""
    return {at: {name: text for name, text in row.items() if text != "u"} for at, row in table.items()}


def distinct(table: Table) -> Table:
    """Return a table without rows that are equal to their predecessor."""
    kept: Table = {}
    last = None
    for at, row in sorted(table.items()):
        if row != last:
            kept[at] = last = row
    return kept
