"""Random texts that a user may type after the commands of the plugins, from a seed."""

from __future__ import annotations

import random
import re

COMMANDS = ("backtrace", "bt", "compare", "explain", "status")
_WORDS = (
    *("0", "1", "-1", "007", "4294967296", "99999999999999999999", "1" * 30, "9" * 5000, "1.5", "0x10", "1e3", "\xb2"),
    *("-all", "--all", "-al", "--json", "--jsn", "-", "--", "-regs", "-ucontext", "-jmpbuf", "always", "on"),
    *("main", "main+4", "main + 4", "main - 1", "main+0x7fffffffffffffffffff", "$pc", "$pc + 2", "$sp", "*(int*)0"),
    *(
        "no_such_symbol",
        "'",
        '"',
        "''",
        '"a b"',
        "\\",
        "%s%n",
        "{}",
        "(",
        ")",
        "pc=1,sp=2,fp=3",
        "pc=",
        "pc=1,pc=1",
        "=",
    ),
    *(
        "0xffffffffffffffff",
        "0x10000000000000000",
        "-0x8000000000000000",
        "(char)1",
        "1.0",
        "&main",
        "*main",
        "\x01",
        "ü",
    ),
)


def lines(seed: int, count: int) -> list[str]:
    """Return commands with random arguments; some of them are right."""
    drawn = random.Random(seed)
    found = []
    for _ in range(count):
        words = [drawn.choice(_WORDS) for _ in range(drawn.choice((1, 1, 1, 2, 2, 3)))]
        found.append(f"sframe {drawn.choice(COMMANDS)} {drawn.choice((' ', '', '  ')).join(words)}")
    return found


def is_internal(error: str) -> bool:
    """Return whether the text of an error is that of a Python exception, or has more than one line."""
    return len(error.strip().splitlines()) != 1 or re.search(r"\b[A-Z]\w+(Error|Exception)\b", error) is not None
