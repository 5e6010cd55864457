"""Makes random functions, and compares the proofs about their rows with executions.

python -m lab.code.generated [--machine amd64|aarch64|s390x] [--first SEED] [--programs N] [--count N]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lab.code.generated.judging import judged
from lab.code.recipes import MACHINES


def main() -> int:
    """Print each function with a false proof, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", choices=MACHINES, action="append", help="all, unless it is given")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first program")
    parser.add_argument("--programs", type=int, default=1, help="how many programs for each machine")
    parser.add_argument("--count", type=int, default=200, help="functions in each")
    options = parser.parse_args()
    broken = 0
    for machine in options.machine or MACHINES:
        total = [0] * 7
        for seed in range(options.first, options.first + options.programs):
            with tempfile.TemporaryDirectory() as folder:
                for function in judged(machine, seed, options.count, Path(folder)):
                    if function.proved_falsely or function.accused:
                        broken += 1
                        print(f"{machine}, seed {seed}:\n{function}")
                    total = [known + new for known, new in zip(total, function.counts)]
        reached, proved, right, wrong, found, accused, functions = total
        print(
            f"{machine}: {functions} functions; {reached} instructions executed; {right} rows right in each execution, "
            f"{proved} of them proved, {accused} called wrong; {wrong} rows wrong, {found} of them called wrong",
            flush=True,
        )
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
