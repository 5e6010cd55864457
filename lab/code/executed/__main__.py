"""Executes all planted pairs in QEMU, and compares the proofs by the code with the results.

python -m lab.code.executed [--machine amd64|aarch64|s390x] [--open]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lab.code.executed.verdicts import Verdicts
from lab.code.recipes import MACHINES


def main() -> int:
    """Print the contradictions, and the number of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", choices=MACHINES, action="append", help="all, unless it is given")
    parser.add_argument("--open", action="store_true", help="print the functions that stay unknown")
    options = parser.parse_args()
    broken = 0
    for machine in options.machine or MACHINES:
        with tempfile.TemporaryDirectory() as folder:
            verdicts = Verdicts(machine, Path(folder))
            results = list(verdicts.results(range(len(verdicts.pairs))))
        for result in results:
            name = f"{machine}: {result.function.name}: {result.function.recipe.title}"
            for what, pcs in (("proved falsely", result.proved_falsely), ("accused", result.accused)):
                if pcs:
                    print(f"{name}: {what} at {', '.join(map(hex, pcs))}")
            if not result.is_planted:
                print(f"{name}: QEMU does not show what was planted")
            if options.open and not result.is_found:
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
        broken += sum(bool(one.proved_falsely or one.accused or not one.is_planted) for one in results)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
