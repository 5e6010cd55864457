"""Compares the rows that machine code alone gives with the CFI of the same file, which is hidden from the code.

python -m lab.code.from_code [--stripped] FILE...

For each file: the functions that CFI describes, how many of them have no row that differs and none missing, and the
instructions by outcome.  `--stripped` hides the symbols too: functions are found by following calls.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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

    :param with_symbols: the extents of functions by symbols and CFI may be used, but no rule.
    """
    extents = binary.cfi.ranges() if with_symbols else []
    by_start = {one.start: one for one in functions_by_code(binary, extents, with_exceptions=False)}
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

    Without symbols, a function and one after it to which it jumps look like one.
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


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m lab.code.from_code", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--stripped", action="store_true", help="hide the symbols, too")
    options = parser.parse_args()
    print("| file | functions | found | right as a whole | equal / another form / not known / different |")
    print("|---|--:|--:|--:|--:|")
    failed = False
    for path in options.files:
        with opened(path) as binary:
            found = compared(binary, not options.stripped)
        kinds = " / ".join(f"{found.instructions[kind]:,}" for kind in (EQUAL, OTHER_FORM, NOT_KNOWN, DIFFERENT))
        print(f"| {path.name} | {found.functions:,} | {found.found:,} | {found.whole:,} | {kinds} |", flush=True)
        for one in found.differences[:10]:
            print(f"  {one.address:#x} {one.function}: code {one.code}; CFI {one.cfi}")
        failed |= bool(found.differences)
    return int(failed)


if __name__ == "__main__":
    exit_with(main)
