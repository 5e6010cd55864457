"""Builds programs from random functions: first to observe them, then with the rows that one execution suggests."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.code.executed.judge import Judge, Program, link
from lab.code.executed.stub import Stub
from lab.code.generated.generating import Generator
from lab.code.generated.observed import Observer, Row
from lab.code.generated.vocabulary import VOCABULARIES
from sframe_unwind.code.decode.machines import MACHINES
from tests.code.assembled import BINUTILS, TARGETS
from tests.hanging import HANG
from tools.binutils import provide

Functions = Sequence[Sequence[str]]
"""The lines of each function."""
_ERROR = re.compile(r":(\d+): Error")
_ARCHITECTURE = "\t.arch armv8.6-a+sve+memtag"


def name(number: int) -> str:
    """Return the symbol of a function."""
    return f"made_{number}"


def make(machine: str, seed: int, count: int, folder: Path) -> tuple[Program, list[list[str]]]:
    """Make functions, execute each once, and link them with rows that hold in that execution.

    :returns: the program, and the lines of each function with their directives.
    """
    random_ = random.Random(f"{machine} {seed}")
    generator = Generator(random_, VOCABULARIES[machine])
    functions = _assembled(machine, [generator.function() for _ in range(count)], folder)
    names = [name(number) for number in range(count)]
    bare = link(machine, _source(machine, functions, labelled=True), names, folder / "bare")
    with Stub(machine, bare.path) as stub:
        observer, judge = Observer(random_, MACHINES[machine].arch, stub), Judge(machine, bare, stub)
        places = {bare.symbols[label]: label for label in bare.symbols if label.startswith("line_")}
        rows: dict[str, Row] = {}
        for each in names:
            states = judge.reached(each, random_, random_.randrange(8))
            rows.update((places[pc], row) for pc, row in observer.rows(states) if pc in places)
    described = [_described(number, lines, rows) for number, lines in enumerate(functions)]
    return link(machine, _source(machine, described, labelled=False), names, folder / "described"), described


def _assembled(machine: str, functions: Functions, folder: Path) -> list[list[str]]:
    """Return functions without the lines that the assembler rejects: not every operand fits every instruction."""
    target, options = TARGETS[machine]
    assembler = provide(BINUTILS, target) / "as"
    source = folder / "tried.s"
    lines = [(number, line) for number, function in enumerate(functions) for line in function]
    source.write_text("\n".join([_ARCHITECTURE if machine == "aarch64" else "", *(line for _, line in lines), ""]))
    done = subprocess.run(
        [str(assembler), *options, str(source), "-o", str(folder / "tried.o")],
        capture_output=True, text=True, check=False, timeout=HANG,
    )  # fmt: skip
    refused = {int(line) - 2 for line in _ERROR.findall(done.stderr)}
    kept: list[list[str]] = [[] for _ in functions]
    for place, (number, line) in enumerate(lines):
        if place not in refused:
            kept[number].append(line)
    return kept


def _described(number: int, lines: Sequence[str], rows: Mapping[str, Row]) -> list[str]:
    """Return the lines of a function with directives between them."""
    described: list[str] = []
    known: tuple[str, ...] = ("", "", "")
    for place, line in enumerate(lines):
        row = rows.get(f"line_{number}_{place}")
        if row is not None:
            described += [new for old, new in zip(known, row) if new != old]
            known = row
        described.append(line)
    return described


def _source(machine: str, functions: Functions, labelled: bool) -> str:
    """Return the assembly of functions.

    :param labelled: whether each line has a label by which its address is found.
    """
    text = [_ARCHITECTURE] if machine == "aarch64" else []
    for number, lines in enumerate(functions):
        text += [
            f"\t.globl {name(number)}",
            f"\t.type {name(number)},%function",
            f"{name(number)}:",
            "\t.cfi_startproc",
        ]
        for place, line in enumerate(lines):
            text += [f"line_{number}_{place}:"] if labelled and not line.endswith(":") else []
            text.append(line)
        text += ["\t.cfi_endproc", f"\t.size {name(number)},.-{name(number)}"]
    return "\n".join([*text, ""])
