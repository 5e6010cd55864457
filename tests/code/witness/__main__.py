"""Executes instructions from random states and checks every claim of the lifter about them.

python -m tests.code.witness --arch amd64|aarch64|s390x [--steps N] [--first SEED] [--files N] [--each N]
    [--seconds N]
"""

from __future__ import annotations

import argparse
import math
import random
import time

from tests.code.witness.encodings import generated, libraries, of_file
from tests.code.witness.running import Witness


def main() -> int:
    """Print what does not hold, by kind of claim and mnemonic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", required=True, choices=("amd64", "aarch64", "s390x"))
    parser.add_argument("--steps", type=int, default=200_000, help="executions in all")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--files", type=int, default=0, help="libraries whose instructions are executed first")
    parser.add_argument("--each", type=int, default=8, help="executions of each instruction")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which it ends in any case")
    options = parser.parse_args()
    random_ = random.Random(options.first)
    started = time.monotonic()
    with Witness(options.arch, options.each) as witness:
        for path in libraries(options.arch)[: options.files]:
            for raw in of_file(path, witness.lifter):
                if witness.steps < options.steps and time.monotonic() < started + options.seconds:
                    witness.check(raw, random_.getrandbits(60))
        if options.files:
            print(witness.summary("libraries"), flush=True)
        for raw in generated(witness.lifter.machine, random_):
            if witness.steps >= options.steps or time.monotonic() >= started + options.seconds:
                break
            witness.check(raw, random_.getrandbits(60))
        print(witness.summary("in all"))
        for line in witness.lines():
            print(line)
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if witness.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
