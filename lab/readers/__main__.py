"""Runs all readers on all cases, and prints the results.

    python -m lab.readers [--case NAME]

Without ``--case``: a table of readers, and each kind of case in which a reader is not right.  The exit status is 1 if
the decoder of this project is not right in a case.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence

from lab.readers.corpus import Case, cases
from lab.readers.readers import available, ours
from lab.readers.running import Outcome, Reader, Result, run

_VALID = (Outcome.RIGHT, Outcome.LOSES, Outcome.WRONG, Outcome.REFUSES, Outcome.CRASHES)
_MALFORMED = (Outcome.READS, Outcome.REFUSES, Outcome.CRASHES)
Results = Sequence[tuple[Case, Result]]


def table(results: Sequence[tuple[Reader, Results]]) -> list[str]:
    """Return the lines of the table of readers, for cases that each is made for; malformed ones apart."""
    lines = [
        "| reader | versions | cases | right | loses | wrong | refuses | crashes |"
        " malformed | reads | refuses | crashes |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for reader, found in results:
        cells = [reader.name, ", ".join(map(str, sorted(reader.versions)))]
        for valid, outcomes in ((True, _VALID), (False, _MALFORMED)):
            counts = Counter(result.outcome for case, result in own(reader, found) if case.is_valid is valid)
            cells += [str(sum(counts.values())), *(str(counts[outcome]) for outcome in outcomes)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def own(reader: Reader, found: Results) -> list[tuple[Case, Result]]:
    """Return the results of cases that a reader is made for."""
    return [(case, result) for case, result in found if reader.is_for(case)]


def differences(reader: Reader, found: Results) -> list[str]:
    """Return a line for each kind of case in which a reader is not right, with the smallest section of the kind."""
    kinds: dict[tuple[str, str], list[tuple[Case, Result]]] = defaultdict(list)
    for case, result in found:
        is_odd = result.outcome is Outcome.CRASHES or (
            reader.is_for(case) and case.is_valid and result.outcome is not Outcome.RIGHT
        )
        if is_odd:
            label = "another version or machine" if case.is_valid and not reader.is_for(case) else kind(case)
            kinds[result.outcome.value, label].append((case, result))
    lines = []
    for (outcome, _), members in kinds.items():
        case, result = min(members, key=lambda member: len(member[0].section))
        number = f" and {len(members) - 1} more" if len(members) > 1 else ""
        lines.append(f"  {outcome}: {case.name}{number} ({case.tests}): {result.detail}")
    return lines


def kind(case: Case) -> str:
    """Return the name of a case without version and ABI."""
    return case.name.split("-", 2)[2] if case.name.startswith("v") else case.name


def main() -> int:
    """Run the readers; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", help="print what each reader does with this case alone")
    options = parser.parse_args()
    made = [case for case in cases() if options.case in (None, case.name)]
    if not made:
        parser.error(f"no case is called {options.case}")
    readers, missing = available()
    results: list[tuple[Reader, Results]] = [(reader, list(zip(made, run(reader, made)))) for reader in readers]
    for why in missing:
        print(f"not run: {why}")
    if options.case:
        for reader, found in results:
            print(f"{reader.name}: {found[0][1].outcome.value} {found[0][1].detail}".rstrip())
    else:
        print(f"{len(made)} cases", *table(results), sep="\n")
        for reader, found in results:
            print("", reader.name, *(differences(reader, found) or ["  right in all"]), sep="\n")
    return int(any(result.outcome is not Outcome.RIGHT for case, result in _of_ours(results) if case.is_valid))


def _of_ours(results: Sequence[tuple[Reader, Results]]) -> Results:
    return next(found for reader, found in results if reader.name == ours().name)


if __name__ == "__main__":
    sys.exit(main())
