"""Compares the rows that machine code alone gives with the CFI of the same file, which is hidden from the code.

python -m lab.code.from_code [--stripped] [--abi ABI] [FILE...]

Without FILE, the files are those of :mod:`lab.code.described_files`.  For each file: the functions that CFI describes,
how many of them have a row at each instruction and none that differs, the instructions by outcome, and the share of
those with a row.  The tables of landing pads, to which the CFI refers, tell where exceptions lead.  `--stripped` hides
the CFI and the symbols as a whole: functions are found by following calls.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from lab.code.described_files import MACHINES, Described, described
from sframe_unwind.address import Range
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import CfiRules, NoRule
from sframe_unwind.code.rows.whole_file import FunctionRows
from sframe_unwind.convert.from_code import functions_by_code
from sframe_unwind.elf import ElfBinary, opened
from sframe_unwind.elf.cfi import CfiProblem
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule
from tools.ending import exit_with

EQUAL, OTHER_FORM, OUTERMOST = "equal", "another form", "outermost by the CFI"
NOT_KNOWN, NOT_COMPARABLE, DIFFERENT = "not known", "not comparable", "different"
NOT_EXECUTED = "padding, which has another row and is not executed"


class Difference(NamedTuple):
    """An instruction at which the two give different values."""

    address: int
    function: str
    code: UnwindRule
    cfi: UnwindRule


class Compared(NamedTuple):
    """The result for one file."""

    functions: int
    """Number of functions that CFI describes."""
    found: int
    """Number of these at whose start the code has a function."""
    whole: int
    """Number of these with a row at each instruction, and none that differs."""
    instructions: Counter[str]
    differences: list[Difference]
    misplaced: list[int]
    """Starts that lie in the middle of a function that CFI describes."""


def compared(binary: ElfBinary, with_symbols: bool = True) -> Compared:
    """Compare the rows of a file's code with its CFI.

    :param with_symbols: the extents of functions by symbols and CFI, and the tables of landing pads that CFI names, may
        be used, but no rule.
    """
    extents = binary.cfi.ranges() if with_symbols else []
    by_start = {one.start: one for one in functions_by_code(binary, extents, with_exceptions=with_symbols)}
    rules = CfiRules(binary.arch)
    instructions: Counter[str] = Counter()
    differences: list[Difference] = []
    functions = found = whole = 0
    for function in binary.cfi.all_functions():
        if isinstance(function, CfiProblem):
            continue
        functions += 1
        own = by_start.get(function.start)
        if own is None:
            continue
        found += 1
        offsets, said = rules.rows(function, function.start, function.end)
        before = instructions[NOT_KNOWN] + instructions[DIFFERENT]
        for at, rule in _rows(own, function.end):
            expected = said[bisect_right(offsets, at - function.start) - 1]
            how = outcome(rule, expected, binary.arch)
            if how == DIFFERENT and at in own.unreached:
                how = NOT_EXECUTED
            instructions[how] += 1
            if how == DIFFERENT and rule is not None and isinstance(expected, UnwindRule):
                differences.append(Difference(at, binary.function_name(at), rule, expected))
        whole += before == instructions[NOT_KNOWN] + instructions[DIFFERENT]
    return Compared(
        functions=functions,
        found=found,
        whole=whole,
        instructions=instructions,
        differences=differences,
        misplaced=_misplaced(by_start, binary.cfi.ranges()),
    )


def _misplaced(by_start: dict[int, FunctionRows], extents: list[Range]) -> list[int]:
    starts = [start for start, _ in extents]
    found = []
    for start in by_start:
        at = bisect_right(starts, start) - 1
        if at >= 0 and starts[at] < start < extents[at][1]:
            found.append(start)
    return found


def _rows(function: FunctionRows, end: int) -> Iterator[tuple[int, UnwindRule | None]]:
    """Yield each instruction of a function before an address, with its rule.

    Without symbols, two neighbouring functions look like one if the first jumps to the second.
    """
    for at in function.instructions:
        if at < end:
            yield at, function.rule_at(at)


def outcome(rule: UnwindRule | None, expected: UnwindRule | NoRule, arch: Arch) -> str:
    """Return how the rule of the code compares with that of the CFI.

    :param rule: ``None``: it is not known.
    """
    if rule is None:
        return NOT_KNOWN
    if isinstance(expected, NoRule):
        return NOT_COMPARABLE
    if expected.ra_undefined:
        return OUTERMOST
    if rule == expected:
        return EQUAL
    same_base = rule.cfa is not None and expected.cfa is not None and rule.cfa.base == expected.cfa.base
    places = ((rule.ra, expected.ra, arch.ra), (rule.fp, expected.fp, arch.fp))
    if same_base and rule.cfa != expected.cfa:
        return DIFFERENT
    return OTHER_FORM if all(_may_agree(*place) for place in places) else DIFFERENT


def _may_agree(one: RegisterRule | None, other: RegisterRule | None, own: int | None) -> bool:
    """Return whether two places can have the same value: a saved register is often still unchanged."""
    return one == other or (own is not None and None in (one, other))


HEAD = """\
| machine | file | functions | found | right as a whole | equal / another form / not known / different | with a row |
|---|---|--:|--:|--:|--:|--:|"""


def line(machine: str, label: str, found: Compared) -> str:
    """Return the line of the table for one file."""
    counts = [found.instructions[kind] for kind in (EQUAL, OTHER_FORM, NOT_KNOWN, DIFFERENT)]
    share = 100 * (1 - found.instructions[NOT_KNOWN] / max(1, sum(counts)))
    kinds = " / ".join(f"{count:,}" for count in counts)
    numbers = f"{found.functions:,} | {found.found:,} | {found.whole:,} | {kinds} | {share:.2f}%"
    return f"| {machine} | {label} | {numbers} |"


def main() -> int:
    """Print the table, and then each difference and each function that was found where there is none."""
    parser = argparse.ArgumentParser(prog="python -m lab.code.from_code", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--stripped", action="store_true", help="hide the symbols, too")
    without_file = "without FILE, take the files of this machine; default: all"
    parser.add_argument("--abi", action="append", choices=list(MACHINES), help=without_file)
    options = parser.parse_args()
    wrong: list[str] = []
    print(HEAD, flush=True)
    for file in _files(options.files, options.abi or list(MACHINES)):
        with opened(file.provide()) as binary:
            found = compared(binary, not options.stripped)
        print(line(file.machine, file.label, found), flush=True)
        for one in found.differences:
            wrong.append(f"{file.label}: {one.address:#x} {one.function}: code {one.code}; CFI {one.cfi}")
        wrong += [f"{file.label}: {start:#x}: in the middle of a function" for start in found.misplaced]
    print("\n".join(["", *wrong]))
    return int(bool(wrong))


def _files(paths: list[Path], machines: list[str]) -> Iterator[Described]:
    if not paths:
        for machine in machines:
            yield from described(machine)
    for path in paths:
        with opened(path) as binary:
            yield Described(binary.arch.name, f"`{path.name}`", partial(Path, path))


if __name__ == "__main__":
    exit_with(main)
