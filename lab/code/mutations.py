"""Counts the wrong rows that the code detects: each row of a program is changed in one field at a time.

python -m lab.code.mutations FILE [--most N] [--same] [--found]

QEMU executes the instructions of changed rows, on paths through their functions.  A row that is not detected must have
the same meaning: it gives the right value at all of them.  A detected one must not.  Exceptions are printed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from lab.code.forced import Forced
from lab.code.meanings import Meaning, Meanings
from lab.code.mutating import Mutation, Substitute, mutations
from sframe_unwind import elf
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.code.image.elf_image import exception_tables, image_of
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.judge.checking import Checker
from sframe_unwind.code.judge.findings import SFRAME, Verdicts
from sframe_unwind.code.judge.judgement import PROVED, Judgement, Judgements
from sframe_unwind.verify.code_tables import SFrameTable


class Fate(NamedTuple):
    """The result for a mutation."""

    mutation: Mutation
    worst: Judgement
    """The worst judgement at the instructions of the row."""
    why: str
    """The reason if it is unknown."""
    meaning: Meaning | None
    """``None``: it was not executed."""


def fates(path: Path, most: int, found: bool) -> Iterator[Fate]:
    """Yield the results for the mutations of a file, evenly chosen among all if there are too many.

    :param found: also execute those that are detected.
    """
    with elf.opened(path) as binary, tempfile.TemporaryDirectory() as folder:
        arch = binary.arch
        machine = MACHINES[arch.name]
        table = SFrameTable(binary.sframe)
        image = image_of(binary, machine)
        landing_pads = exception_tables(binary, image)
        substitute = Substitute(table)
        interpreter = Interpreter(image, machine, Lifter(machine), CodeRanges(table.ranges()), landing_pads)
        checker = Checker(interpreter, {SFRAME: substitute})
        every = list(mutations(table, arch))
        chosen = every[:: max(len(every) // most, 1)]
        with Forced(path, interpreter, Path(folder)) as forced:
            meanings = Meanings(interpreter, forced)
            for function, group in groupby(chosen, lambda mutation: mutation.function):
                judged = []
                for mutation in group:
                    substitute.mutation = mutation
                    judged.append((mutation, _worst(checker, mutation)))
                substitute.mutation = None
                asked = [mutation for mutation, one in judged if found or one.worst is not Judgement.WRONG]
                said = iter(meanings.of(function, asked) if asked else ())
                for mutation, one in judged:
                    is_asked = found or one.worst is not Judgement.WRONG
                    yield Fate(mutation, one.worst, one.why, next(said) if is_asked else None)


def _worst(checker: Checker, mutation: Mutation) -> Judgements:
    """Return the worst judgement at the instructions of a row."""
    judged = [
        one
        for verdicts in _verdicts(checker, mutation.function)
        for pc, one in verdicts.items()
        if pc in mutation.addresses
    ]
    return max(judged, key=lambda one: one.worst, default=PROVED)


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
    """Print how many are detected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=2000)
    parser.add_argument("--same", action="store_true", help="print each row that is not found, and what it means")
    parser.add_argument("--found", action="store_true", help="execute those that are found, too")
    options = parser.parse_args()
    for path in options.files:
        counts: Counter[tuple[str, str]] = Counter()
        meanings: Counter[tuple[str, str]] = Counter()
        executed = instructions = 0
        for fate in fates(path, options.most, options.found):
            mutation, judged, meaning = fate.mutation, fate.worst.name.lower(), fate.meaning
            counts[mutation.field, judged] += 1
            if meaning is None:
                continue
            shown = "the same" if meaning.is_same else "not the same" if meaning.executed else "not executed"
            meanings[judged, shown] += 1
            executed, instructions = executed + meaning.executed, instructions + meaning.instructions
            is_found = fate.worst is Judgement.WRONG
            if is_found == meaning.is_same or (options.same and not is_found):
                why = f" ({fate.why})" if fate.why else ""
                print(
                    f"  {mutation.addresses.start:#x} {mutation.field}: {judged}{why}; {meaning.text}, "
                    f"{meaning.executed} of {meaning.instructions} instructions executed"
                )
        total, wrong = sum(counts.values()), sum(n for (_, worst), n in counts.items() if worst == "wrong")
        print(f"{path}: {wrong} of {total} found; {executed} of {instructions} instructions executed")
        for (judged, shown), number in sorted(meanings.items()):
            print(f"  {judged}, and {shown}: {number}")
        for (field, judged), number in sorted(counts.items()):
            print(f"  {field}: {number} {judged}")


if __name__ == "__main__":
    main()
