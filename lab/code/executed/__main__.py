"""Executes all planted pairs in QEMU, and compares the proofs by the code with the results.

python -m lab.code.executed [--machine amd64|aarch64|s390x] [--open]
python -m lab.code.executed --rows [--stripped] [--machine amd64|aarch64|s390x] [--open]

With `--rows`, the tables are hidden, and the rows that the code gives are compared with the results.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lab.code.executed.by_code import RowsByCode
from lab.code.executed.verdicts import Verdicts
from lab.code.recipes import MACHINES


def main() -> int:
    """Print the contradictions, and the number of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", choices=MACHINES, action="append", help="all, unless it is given")
    parser.add_argument("--open", action="store_true", help="print the functions that stay unknown")
    parser.add_argument("--rows", action="store_true", help="hide the tables, and make rows from the code")
    parser.add_argument("--stripped", action="store_true", help="with --rows: hide the symbols, too")
    options = parser.parse_args()
    broken = 0
    for machine in options.machine or MACHINES:
        with tempfile.TemporaryDirectory() as folder:
            if options.rows:
                broken += _rows(machine, Path(folder), not options.stripped, options.open)
            else:
                broken += _proofs(machine, Path(folder), options.open)
    return 1 if broken else 0


def _proofs(machine: str, folder: Path, with_open: bool) -> int:
    """Print the results of the proofs, and return the number of contradictions."""
    verdicts = Verdicts(machine, folder)
    results = list(verdicts.results(range(len(verdicts.pairs))))
    for result in results:
        name = f"{machine}: {result.function.name}: {result.function.recipe.title}"
        for what, pcs in (("proved falsely", result.proved_falsely), ("accused", result.accused)):
            if pcs:
                print(f"{name}: {what} at {', '.join(map(hex, pcs))}")
        if not result.is_planted:
            print(f"{name}: QEMU does not show what was planted")
        if with_open and not result.is_found:
            print(f"{name}: unknown")
    wrong = [result for result in results if result.function.is_wrong]
    right = [result for result in results if not result.function.is_wrong]
    unknown, instructions = verdicts.unknown
    print(
        f"{machine}: {len(verdicts.pairs)} pairs; wrong ones: {sum(one.is_found for one in wrong)} found, "
        f"{sum(bool(one.proved_falsely) for one in wrong)} proved falsely; right ones: "
        f"{sum(one.is_found for one in right)} proved whole, {sum(bool(one.accused) for one in right)} accused; "
        f"unknown: {unknown} of {instructions} verdicts on instructions"
    )
    return sum(bool(one.proved_falsely or one.accused or not one.is_planted) for one in results)


def _rows(machine: str, folder: Path, with_symbols: bool, with_open: bool) -> int:
    """Print the results of the rows by the code, and return the number of functions with a wrong one."""
    by_code = RowsByCode(machine, folder, with_symbols)
    results = list(by_code.results(range(len(by_code.pairs))))
    for result in results:
        name = f"{machine}: {result.function.name}: {result.function.recipe.title}"
        if result.different:
            print(f"{name}: different at {', '.join(map(hex, result.different))}")
        if with_open and result.unknown:
            print(f"{name}: unknown at {', '.join(map(hex, result.unknown))}")
    whole = sum(not result.unknown and not result.different for result in results)
    right, unknown, different = (sum(map(len, kind)) for kind in list(zip(*results))[1:])
    print(
        f"{machine}: {len(by_code.pairs)} pairs, {len(results)} functions, {whole} of them right as a whole; "
        f"instructions reached: {right} right, {unknown} not known, {different} different"
    )
    return sum(bool(result.different) for result in results)


if __name__ == "__main__":
    raise SystemExit(main())
