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
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from lab.code.stops.building import COMPARED, PROGRAMS, WITH_CFI, Program, build, places
from lab.code.stops.comparing import Count, compared
from lab.code.stops.debuggers import DEBUGGERS, collected
from tests.samples.catalogue import WITH_LIBC
from tools.ending import exit_with


def study(
    programs: Sequence[Program],
    debugger: str,
    abi: str,
    stops: int,
    seed: int,
    alone: bool,
    report: Callable[[str], None],
) -> dict[str, Count]:
    """Return the result for each kind of build.

    :param stops: number of stops in each program.
    :param alone: without the plugin.
    :param report: called with a line for each difference, and for each program.
    """
    totals = {kind: Count() for kind in COMPARED}
    for program in programs:
        rng = random.Random(f"{seed} {program.name}")
        with tempfile.TemporaryDirectory() as folder:
            paths = build(program, abi, Path(folder))
            chosen = places(paths[WITH_CFI], abi, 3 * stops, rng)
            asked = debugger, abi, program, chosen, stops
            for kind, total in totals.items():
                wanted = collected(*asked, paths[COMPARED[kind]], by_code=False)
                found = collected(*asked, paths[kind], by_code=not alone)
                count = compared(wanted, found, f"{program.name}, {kind}", report)
                report(f"{program.name:16} {kind:9} {count}")
                total.add(count)
    return totals


def main() -> int:
    """Print the table, and each frame that is wrong; return exit status 1 if there is one by the plugin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--debugger", choices=DEBUGGERS, default="gdb")
    parser.add_argument("--abi", choices=WITH_LIBC, default="amd64")
    parser.add_argument("--stops", type=int, default=20, help=f"in each of the {len(PROGRAMS)} programs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="the debugger without the plugin")
    options = parser.parse_args()
    asked = options.debugger, options.abi, options.stops, options.seed, options.alone
    totals = study(PROGRAMS, *asked, report=lambda line: print(line, flush=True))
    for kind, total in totals.items():
        print(f"{'all':16} {kind:9} {total}")
    return 1 if not options.alone and any(total.wrong for total in totals.values()) else 0


if __name__ == "__main__":
    sys.exit(exit_with(main))
