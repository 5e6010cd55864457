"""Checks what linkers do with object files whose SFrame is compacted.

    python -m lab.readers.linked

GNU ld, lld and mold link the same object files, with and without ``-r``, once with plain SFrame of version 3 and once
with compacted.  Prints a line for each; the exit status is 1 if a linked file does not give the same rules.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sframe_unwind import elf
from sframe_unwind.convert.consumers import target_for
from sframe_unwind.convert.linkable import with_sframe
from sframe_unwind.convert.source import DWARF, read_source
from sframe_unwind.elf import ElfBinary
from sframe_unwind.sframe.table import Miss
from sframe_unwind.translation.compact import compacted
from sframe_unwind.translation.to_sframe import make_table
from sframe_unwind.unwind_rule import UnwindRule
from tests.elf.objects import tools_for
from tests.hanging import HANG
from tools.producers import provide

_SECONDS = HANG
_FUNCTIONS = 24
_FLAGS = ("-O2", "-ffreestanding", "-fno-pie", "-fno-stack-protector", "-fasynchronous-unwind-tables")
_USES = "int use(int *);\n" + "\n".join(
    f"int f{n}(int a) {{ int b[{4 + n % 3}] = {{ a }}; use(b); return b[{n % 3}] + {n}; }}" for n in range(_FUNCTIONS)
)
_DEFINES = "int use(int *p) { return *p; }\nvoid start(void) {}\n"


class Linked(NamedTuple):
    """The SFrame of a linked file."""

    size: int
    """The size in bytes."""
    entries: int
    tables: int
    rules: dict[int, UnwindRule]
    """The rules by address, counted from the first function's start."""


def make_objects(folder: Path, is_compact: bool) -> list[Path]:
    """Compile two object files, and give them SFrame made from their CFI."""
    made = []
    for name, source in (("uses", _USES), ("defines", _DEFINES)):
        file = folder / f"{name}.c"
        file.write_text(source, encoding="ascii")
        compiled = file.with_suffix(".o")
        subprocess.run(["gcc", *_FLAGS, "-c", str(file), "-o", str(compiled)], check=True, timeout=_SECONDS)
        with elf.opened(compiled) as binary:
            assert isinstance(binary, ElfBinary)
            read = read_source(binary, DWARF)
            table = make_table(read.descriptions, read.arch, target_for((), 3)).table
            if is_compact:
                table = compacted(table, binary.padding.fills).table
            content, _ = with_sframe(binary, table)
        compiled.write_bytes(content)
        made.append(compiled)
    return made


def link(linker: Path, options: Sequence[str], objects: Sequence[Path], result: Path) -> Linked:
    """Link object files, and read the SFrame of the result."""
    command = [str(linker), *options, "-o", str(result), *map(str, objects)]
    subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS)
    rules, size, entries, tables = {}, 0, 0, 0
    for section in elf.load(result):
        size, tables = size + section.size, tables + len(section.tables)
        for function in section.functions():
            entries += 1
            for pc in range(function.start, function.end):
                found = section.lookup(pc)
                assert not isinstance(found, Miss)  # the first row is at the start
                rules[pc] = found.rule
    first = min(rules)
    return Linked(size, entries, tables, {pc - first: rule for pc, rule in rules.items()})


def main() -> int:
    """Link, and print the results."""
    gnu = {f"GNU ld {name}": tools_for("amd64", version) / "ld" for name, version in (("2.44", 2), ("2.47", 3))}
    linkers = {**gnu, "lld 23": provide() / "ld.lld", "mold 3.0": provide() / "mold"}
    differ = False
    print("| linker | result | plain, bytes | entries | headers | compact | entries | headers | same rules |")
    print("|---|---|--:|--:|--:|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, linker in linkers.items():
            for what, options in (("program", ("-e", "start")), ("object file (`-r`)", ("-r",))):
                plain, compact = (
                    link(linker, options, make_objects(Path(folder), is_compact), Path(folder, "result"))
                    for is_compact in (False, True)
                )
                is_same = all(compact.rules.get(pc) == rule for pc, rule in plain.rules.items())
                differ |= not is_same
                cells = [f"{one.size} | {one.entries} | {one.tables}" for one in (plain, compact)]
                print(f"| {name} | {what} | {' | '.join(cells)} | {'yes' if is_same else 'NO'} |", flush=True)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
