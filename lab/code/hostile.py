"""Checks code and rules that no compiler wrote: the check must end, without an exception.

python -m lab.code.hostile [--count N] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable

from sframe_unwind import unwind_rule
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES, Machine
from sframe_unwind.code.image.code_image import CodeImage, CodeSection, Plt
from sframe_unwind.code.image.exception_tables import LandingPad
from sframe_unwind.code.image.ranges import CodeRange, CodeRanges
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.judge.checking import Checker
from sframe_unwind.code.judge.findings import SFRAME, CodeVerdict
from sframe_unwind.code.judge.tables import Rows
from sframe_unwind.code.judge.whole_file import check_functions
from sframe_unwind.unwind_rule import OUTERMOST, RegisterRule, UnwindRule

START = 0x10000
_JUMPS = {
    "amd64": ("74", "eb", "e8000000", "ffe0", "0f84", "c3", "e9f0ffffff", "ff24c5"),
    "aarch64": ("40000054", "02000014", "f0ffff97", "00001fd6", "c0035fd6"),
    "s390x": ("a7840004", "a7f4fff8", "c0e5fffffff0", "07f1", "07fe", "c610"),
}
"""Jumps, calls and returns, or their first bytes, in hexadecimal digits."""
_MOVES = {
    "amd64": ("53", "5b", "4883ec10", "4883e4e0", "4889e5", "c9", "4829c4", "55"),
    "aarch64": ("fd7bbea9", "fd7bc2a8", "ff4300d1", "ff6320cb", "3f2303d5"),
    "s390x": ("ebbff0580024", "a7fbff60", "b3c1004b", "b90900f2", "e3f0ff58ff71"),
}
"""Instructions that change the stack."""


class RandomRules:
    """Random rules."""

    def __init__(self, random_: random.Random, ranges: list[tuple[int, int]], machine: Machine) -> None:
        self._ranges = ranges
        self._rows = {start: _rows(random_, start, end, machine) for start, end in ranges}

    def ranges(self) -> Iterable[tuple[int, int]]:
        return self._ranges

    def rows(self, function: CodeRange) -> Rows:
        return self._rows.get(function.start, Rows([], []))

    def is_signal(self, function: CodeRange) -> bool:
        return function.start % 61 == 7


def _rows(random_: random.Random, start: int, end: int, machine: Machine) -> Rows:
    starts = sorted({start, *(random_.randrange(start, end) for _ in range(random_.randrange(4)))})
    return Rows(starts, [_rule(random_, machine) for _ in starts])


def _rule(random_: random.Random, machine: Machine) -> UnwindRule | str | None:
    arch = machine.arch
    if random_.random() < 0.1:
        return random_.choice([None, "computed", OUTERMOST])

    def place(*bases: int) -> RegisterRule:
        return RegisterRule(random_.choice(bases), random_.choice((0, 8, 16, -8, 1 << 62, 3)), random_.random() < 0.4)

    saved = [None, place(unwind_rule.CFA), place(arch.fp, 99), unwind_rule.UNDEFINED, unwind_rule.COMPUTED]
    return UnwindRule(
        place(arch.sp, arch.fp, 3, 77), random_.choice(saved[:3]), random_.choice(saved), random_.random() < 0.1
    )


def code(random_: random.Random, machine: Machine, size: int) -> bytes:
    """Return code in which some instructions are meaningful."""
    name = machine.arch.name.partition("_")[0]
    result = bytearray()
    while len(result) < size:
        kind = random_.random()
        if kind < 0.4:
            result += random_.randbytes(random_.randrange(1, 9) if machine.max_size > 6 else machine.max_size)
        else:
            result += bytes.fromhex(random_.choice(_JUMPS[name] if kind < 0.7 else _MOVES[name]))
    return bytes(result[:size])


def check(random_: random.Random, lifter: Lifter, size: int) -> CodeVerdict:
    """Check new code of some size."""
    machine = lifter.machine
    contents = code(random_, machine, size)
    end = START + size
    cuts = sorted({START, end, *(random_.randrange(START, end) for _ in range(random_.randrange(4)))})
    ranges = list(zip(cuts, cuts[1:]))
    data = CodeSection(end + 64, random_.randbytes(64), False, random_.random() < 0.5)
    plts = (Plt(START, end, START + 16, 16),) if random_.random() < 0.05 else ()
    image = CodeImage([CodeSection(START, contents, True, False), data], "little", plts=plts, entry_point=START)

    def landing_pads(pc: int) -> list[LandingPad]:
        return [LandingPad(random_.randrange(START, end), random_.choice((0, 16)))] if pc % 97 == 0 else []

    interpreter = Interpreter(image, machine, lifter, CodeRanges(ranges), landing_pads)
    return check_functions(Checker(interpreter, {SFRAME: RandomRules(random_, ranges, machine)}))


def main() -> None:
    """Check many pieces of code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    lifters = [Lifter(machine) for machine in MACHINES.values()]
    slowest, instructions = 0.0, 0
    for number in range(options.seed, options.seed + options.count):
        random_ = random.Random(number)
        started = time.process_time()
        size = random_.choice((1, 7, 40, 40, 80, 200))
        instructions += check(random_, lifters[number % len(lifters)], size).instructions
        slowest = max(slowest, time.process_time() - started)
        if number % 1000 == 999:
            print(f"\r{number + 1}", end="", flush=True)
    print(f"\r{options.count} inputs, {instructions} instructions, the slowest took {slowest:.2f} s")


if __name__ == "__main__":
    main()
