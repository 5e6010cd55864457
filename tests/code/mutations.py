"""How many wrong rows the code shows: each row of a program is changed in one field, one at a time.

python -m tests.code.mutations FILE [--most N] [--same]

Those that the code proves must mean the same: what the interpretation has in registers and slots says so for each of
them, or it is counted as unexplained.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sframe_unwind import elf, unwind_rule
from sframe_unwind.arch import Arch
from sframe_unwind.code.checking import Checker
from sframe_unwind.code.elf_image import exception_tables, image_of
from sframe_unwind.code.entries import entries, interpreted
from sframe_unwind.code.findings import SFRAME, Verdicts
from sframe_unwind.code.interpretation import Interpreter
from sframe_unwind.code.judgement import Judgement, RowRule
from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import MACHINES
from sframe_unwind.code.ranges import CodeRange, CodeRanges
from sframe_unwind.code.state import State
from sframe_unwind.code.tables import Rows, RuleTable
from sframe_unwind.code.values import CFA, SIGNED, plus
from sframe_unwind.code.walk import walk
from sframe_unwind.unwind_rule import RegisterRule, UnwindRule
from sframe_unwind.verify.code_tables import SFrameTable

_BY = 8
"""How far offsets are moved, in bytes."""


class Mutation(NamedTuple):
    """One row with one change."""

    function: CodeRange
    row: int
    field: str
    rows: Rows


class Fate(NamedTuple):
    """What became of a mutation."""

    mutation: Mutation
    worst: Judgement
    """At the instructions of the row."""
    meaning: str
    """Why it means the same, if it is proved; empty: that is not known."""


class Substitute:
    """A table in which one function has other rows."""

    def __init__(self, table: RuleTable) -> None:
        self._table = table
        self.mutation: Mutation | None = None

    def ranges(self) -> Iterable[tuple[int, int]]:
        return self._table.ranges()

    def rows(self, function: CodeRange) -> Rows:
        if self.mutation is not None and self.mutation.function == function:
            return self.mutation.rows
        return self._table.rows(function)

    def is_signal(self, function: CodeRange) -> bool:
        return self._table.is_signal(function)


def changed(rule: UnwindRule, arch: Arch) -> Iterator[tuple[str, UnwindRule]]:
    """Yield a rule with one field changed, and which."""
    cfa = rule.cfa
    if cfa is None:
        return
    for by in (_BY, -_BY):
        yield "cfa offset", rule._replace(cfa=cfa._replace(offset=cfa.offset + by))
        if rule.ra is not None:
            yield "ra offset", rule._replace(ra=rule.ra._replace(offset=rule.ra.offset + by))
        if rule.fp is not None:
            yield "fp offset", rule._replace(fp=rule.fp._replace(offset=rule.fp.offset + by))
    other = arch.fp if cfa.base == arch.sp else arch.sp
    yield "cfa register", rule._replace(cfa=cfa._replace(base=other))
    if rule.fp is None:
        yield "fp saved", rule._replace(fp=RegisterRule(unwind_rule.CFA, -16, True))
    else:
        yield "fp unchanged", rule._replace(fp=None)
    if arch.ra is not None:
        ra = RegisterRule(unwind_rule.CFA, -8, True) if rule.ra is None else None
        yield "ra saved" if rule.ra is None else "ra unchanged", rule._replace(ra=ra)
    if arch.pac_mask:
        yield "ra signed", rule._replace(ra_signed=not rule.ra_signed)


def mutations(table: RuleTable, arch: Arch) -> Iterator[Mutation]:
    """Yield every row of a table changed in every way."""
    for start, end in table.ranges():
        function = CodeRange(start, end)
        rows = table.rows(function)
        for number, rule in enumerate(rows.rules):
            if isinstance(rule, UnwindRule):
                for field, other in changed(rule, arch):
                    rules: list[RowRule | None] = [*rows.rules]
                    rules[number] = other
                    yield Mutation(function, number, field, Rows(rows.starts, rules))


class Meaning:
    """Says why changed rows mean the same, by what registers and slots hold.

    The judge is not asked: it is what said that they are proved.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._frame = interpreter.frame
        self._function: CodeRange | None = None
        self._states: list[tuple[int, State]] = []

    def explained(self, function: CodeRange, addresses: range, one: UnwindRule, other: UnwindRule) -> str:
        """Return why two rules mean the same at some addresses of a function; empty: it is not known.

        Of two rules, one part differs.
        """
        states = [state for pc, state in self._interpreted(function) if pc in addresses]
        if not states:
            sweep = self._interpreter.sweep_at(function.start)
            padding = self._interpreter.machine.is_padding
            left = [pc for pc in sweep.instructions if pc in addresses]
            is_padding = all(padding(sweep.bytes_at(pc, sweep.instructions[pc].size)) for pc in left)
            return "no instruction in its range is reached" if is_padding else ""
        what = next((what for what in ("cfa", "ra", "fp") if getattr(one, what) != getattr(other, what)), "")
        if not what or not self._hold(what, other, states):
            return ""
        said = [self._said(what, rule) for rule in (one, other)]
        if any(self._holds(what, one, state) for state in states):
            return f"{said[0]} and {said[1]} both hold the {what}" if self._hold(what, one, states) else ""
        return f"the row was wrong before: {said[1]} holds the {what}, and not {said[0]}"

    def _hold(self, what: str, rule: UnwindRule, states: list[State]) -> bool:
        return all(self._holds(what, rule, state) for state in states)

    def _interpreted(self, function: CodeRange) -> list[tuple[int, State]]:
        """Return the states of a function, by address."""
        if function != self._function:
            all_ = self._interpreter
            run = interpreted(all_, function, entries(all_, function))
            self._function = function
            self._states = [(pc, state.copy()) for block in run.states for pc, state in walk(all_, run, block)]
        return self._states

    def _holds(self, what: str, rule: UnwindRule, state: State) -> bool:
        """Return whether the place that a rule has for a value holds it."""
        frame = self._frame
        if what == "cfa":
            assert rule.cfa is not None
            value = state.registers.get(rule.cfa.base)
            return not rule.cfa.in_memory and value is not None and plus(value, rule.cfa.offset) == (CFA, 0)
        place, register = (rule.fp, frame.fp) if what == "fp" else (rule.ra, frame.ra)
        wanted = frame.entry_fp if what == "fp" else SIGNED if rule.ra_signed else frame.return_address
        if place is None:
            return register is not None and state.registers.get(register) == wanted
        return place.base == unwind_rule.CFA and place.in_memory and state.slots.get((CFA, place.offset)) == wanted

    def _said(self, what: str, rule: UnwindRule) -> str:
        arch = self._interpreter.machine.arch
        place: RegisterRule | None = getattr(rule, what)
        if place is None:
            return arch.register_name(arch.fp if what == "fp" or arch.ra is None else arch.ra)
        base = "CFA" if place.base == unwind_rule.CFA else arch.register_name(place.base)
        return f"[{base}{place.offset:+}]" if place.in_memory else f"{base}{place.offset:+}"


def fates(path: Path, most: int) -> Iterator[Fate]:
    """Yield what becomes of the mutations of a file, evenly chosen among all if there are too many."""
    with elf.opened(path) as binary:
        arch = binary.arch
        machine = MACHINES[arch.name]
        table = SFrameTable(binary.sframe)
        image = image_of(binary, machine)
        landing_pads = exception_tables(binary, image)
        substitute = Substitute(table)
        interpreter = Interpreter(image, machine, Lifter(machine), CodeRanges(table.ranges()), landing_pads)
        checker, meaning = Checker(interpreter, {SFRAME: substitute}), Meaning(interpreter)
        found = list(mutations(table, arch))
        for mutation in found[:: max(len(found) // most, 1)]:
            substitute.mutation = mutation
            starts = [*mutation.rows.starts, mutation.function.end]
            first, last = starts[mutation.row], starts[mutation.row + 1]
            judged = [
                one.worst
                for verdicts in _verdicts(checker, mutation.function)
                for pc, one in verdicts.items()
                if first <= pc < last
            ]
            worst = max(judged, default=Judgement.PROVED)
            one, other = table.rows(mutation.function).rules[mutation.row], mutation.rows.rules[mutation.row]
            why = ""
            if worst is Judgement.PROVED and isinstance(one, UnwindRule) and isinstance(other, UnwindRule):
                why = meaning.explained(mutation.function, range(first, last), one, other)
            yield Fate(mutation, worst, why)


def _verdicts(checker: Checker, function: CodeRange) -> Iterator[Verdicts]:
    """Yield the verdicts on a function; the header of a PLT is entered by its entries, which are other functions."""
    yield checker.part(function).verdicts[SFRAME]
    interpreter = checker.interpreter
    plt = interpreter.image.plt(function.start)
    if plt is not None:
        for number in range(len(interpreter.ranges)):
            other = interpreter.ranges[number]
            if other != function and plt.start <= other.start < plt.end:
                part = checker.result(other).elsewhere.get(function.start)
                if part is not None:
                    yield part.verdicts.get(SFRAME, {})


def main() -> None:
    """Print how many are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--same", action="store_true", help="print each row that is proved, and why it means the same")
    options = parser.parse_args()
    for path in options.files:
        counts: Counter[tuple[str, str]] = Counter()
        unexplained = 0
        for fate in fates(path, options.most):
            counts[fate.mutation.field, fate.worst.name.lower()] += 1
            if fate.worst is Judgement.PROVED:
                unexplained += not fate.meaning
                if options.same or not fate.meaning:
                    start = fate.mutation.rows.starts[fate.mutation.row]
                    print(f"  {start:#x} {fate.mutation.field}: {fate.meaning or 'UNEXPLAINED'}")
        total, wrong = sum(counts.values()), sum(n for (_, worst), n in counts.items() if worst == "wrong")
        print(f"{path}: {wrong} of {total} found; of those that are proved, {unexplained} are not explained")
        for (field, worst), number in sorted(counts.items()):
            print(f"  {field}: {number} {worst}")


if __name__ == "__main__":
    main()
