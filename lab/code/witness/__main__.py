"""Executes instructions from random states and checks every claim of the lifter about them.

python -m lab.code.witness --arch amd64|aarch64|s390x [--steps N] [--first SEED] [--files N] [--each N]
    [--seconds N] [--folder DIR]...
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.code.witness.encodings import generated, libraries, of_file, spread
from lab.code.witness.running import Witness


def main() -> int:
    """Print the broken claims, by kind and mnemonic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", required=True, choices=("amd64", "aarch64", "s390x"))
    parser.add_argument("--steps", type=int, default=200_000, help="executions in all")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--files", type=int, default=0, help="libraries whose instructions are executed first")
    parser.add_argument("--each", type=int, default=8, help="executions of each instruction")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which it ends in any case")
    parser.add_argument("--folder", type=Path, action="append", help="where libraries are; installed ones by default")
    options = parser.parse_args()
    random_ = random.Random(options.first)
    started = time.monotonic()
    with Witness(options.arch, options.each) as witness:

        def until_the_end(encodings: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
            for raw in encodings:
                if witness.steps >= options.steps or time.monotonic() >= started + options.seconds:
                    return
                yield raw, random_.getrandbits(60)

        paths = spread(libraries(options.arch, options.folder), options.files)
        if paths:
            seen: set[bytes] = set()
            witness.check(until_the_end(raw for path in paths for raw in of_file(path, witness.lifter, seen)))
            print(witness.summary(f"{len(paths)} libraries"), flush=True)
        witness.check(until_the_end(generated(witness.lifter.machine, random_)))
        print(witness.summary("in all"))
        for line in witness.lines():
            print(line)
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if witness.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
