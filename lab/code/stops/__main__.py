"""Compares stacks by the machine code with those of the same build with CFI, at random stops in a debugger.

python -m lab.code.stops [--debugger NAME] [--abi ABI] [--stops N] [--seed N] [--alone]

Each program is built with CFI and without any unwind data, with symbols and without.  The debugger alone unwinds the
builds with CFI; in the others, `sframe generate code` is on, or with `--alone` the plugin is off.  A frame is wrong if
it is another one than with CFI, and missing if the stack ends before it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from lab.code.stops.building import COMPARED, PROGRAMS, WITH_CFI, build, places
from lab.code.stops.comparing import Count, compared
from lab.code.stops.debuggers import DEBUGGERS, collected
from tests.samples.catalogue import WITH_LIBC
from tools.ending import exit_with


def main() -> int:
    """Print the table, and each frame that is wrong; return exit status 1 if there is one by the plugin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--debugger", choices=DEBUGGERS, default="gdb")
    parser.add_argument("--abi", choices=WITH_LIBC, default="amd64")
    parser.add_argument("--stops", type=int, default=20, help="in each of the 10 programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="the debugger without the plugin")
    options = parser.parse_args()
    totals = {kind: Count() for kind in COMPARED}
    for number, program in enumerate(PROGRAMS):
        rng = random.Random(f"{options.seed} {number}")
        with tempfile.TemporaryDirectory() as folder:
            paths = build(program, options.abi, Path(folder))
            chosen = places(paths[WITH_CFI], options.abi, 3 * options.stops, rng)
            asked = options.debugger, options.abi, program, chosen, options.stops
            for kind, total in totals.items():
                wanted = collected(*asked, paths[COMPARED[kind]], by_code=False)
                found = collected(*asked, paths[kind], by_code=not options.alone)
                count = compared(wanted, found, f"{program.name}, {kind}", print)
                print(f"{program.name:16} {kind:9} {count}", flush=True)
                total.add(count)
    for kind, total in totals.items():
        print(f"{'all':16} {kind:9} {total}")
    return 1 if not options.alone and any(total.wrong for total in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(exit_with(main))
