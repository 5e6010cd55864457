"""Counts the opcodes of GNU as whose claimed effects are executed, and those whose effects are unknown.

python -m lab.code.opcodes [--arch amd64|aarch64|s390x]... [--steps N] [--first SEED] [--tables FOLDER]

Each opcode of the assembler's tables (binutils 2.47, all extensions) gets random operands; objdump confirms that the
bytes are that opcode.  The witness then executes what the lifter claims to know of them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from random import Random

from lab.code.opcodes.counting import STATUSES, Counted
from lab.code.opcodes.sampling import samples
from lab.code.opcodes.tables import fetched, opcodes
from lab.code.witness.running import Witness
from tools.ending import exit_with

_MACHINES = ("amd64", "aarch64", "s390x")
_COLUMNS = ("machine", "opcodes", *STATUSES, "encodings", "executions", "false claims")


def main() -> int:
    """Print the table; list the opcodes that are neither executed nor unknown, and the claims that do not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=_MACHINES, help="all by default")
    parser.add_argument("--steps", type=int, default=32, help="executions of each encoding")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--tables", type=Path, help="folder with the tables; by default, they are fetched")
    options = parser.parse_args()
    are_false = False
    with tempfile.TemporaryDirectory() as folder:
        tables: Path = options.tables or Path(folder)
        if options.tables is None:
            print(f"the tables of binutils {fetched(tables)}")
        print("| " + " | ".join(_COLUMNS) + " |")
        for machine in options.arch or _MACHINES:
            random_ = Random(options.first)
            found = samples(machine, opcodes(machine, tables), random_)
            with Witness(machine, options.steps) as witness:
                counted = Counted(witness, found, random_)
                print(f"| {machine} | " + " | ".join(f"{number:,}" for number in counted.numbers()) + " |")
                for line in counted.lines():
                    print(f"  {line}")
                are_false |= counted.has_false
    return 1 if are_false else 0


if __name__ == "__main__":
    exit_with(main)
