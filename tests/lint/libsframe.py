"""Holds the profiles of libsframe against the libraries themselves, on damaged sections.

    python -m tests.lint.libsframe --count 20000

What a profile accepts, the library must read whole; where it loses functions, the library must not refuse or crash.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from sframe_unwind.lint import PROFILES, gather
from sframe_unwind.lint.judging import Facts, judge
from sframe_unwind.lint.verdict import Outcome
from sframe_unwind.sframe.section import Section
from tests.fuzz.fields import fields
from tests.fuzz.mutations import Mutator
from tests.fuzz.seeds import Seed, seeds
from tests.lint.sections import subject
from tests.missing import toolchain_needed
from tools.binutils import CACHE, provide

READER = Path(__file__).with_name("libsframe_reader.py")
_MAX_BYTES, _MAX_ROWS = 1 << 16, 1 << 12
"""Of code that one section describes, and of rows: each address is looked up, and each row."""
_ADDRESSES = 1 << 46
"""Where files are loaded.  What the library does at the ends of the address space is no concern of processes."""


class Library(NamedTuple):
    """A release of the library."""

    binutils: str
    versions: tuple[int, ...]
    """The versions of SFrame that its tools write or read by themselves."""

    @property
    def profile(self) -> str:
        return f"libsframe-{self.binutils}"


LIBRARIES = (Library("2.44", (2,)), Library("2.47", (3,)))


def answers(library: Library, requests: Sequence[Facts]) -> list[Any]:
    """What the library does with each section; see :mod:`tests.lint.libsframe_reader`."""
    with toolchain_needed():
        provide(library.binutils, "x86_64")
    (path,) = (CACHE / library.binutils / "root/usr/lib/x86_64-linux-gnu").glob("libsframe.so.?")
    lines = "".join(json.dumps(_request(facts)) + "\n" for facts in requests)
    command = [sys.executable, str(READER), str(path)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=3600, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(requests)
    return found


def _request(facts: Facts) -> tuple[str, list[tuple[int, int, int]]]:
    address = facts.subject.address
    listed = [(one.start - address, one.size, one.rows) for one in facts.functions if not one.table]
    return facts.subject.data.hex(), listed


def damaged(library: Library, numbers: Iterable[int]) -> list[Facts]:
    """Mutations of little-endian sections of the versions that a library knows."""
    chosen = tuple(seed for seed in seeds() if seed.data[0] == 0xE2 and seed.data[2] in library.versions)
    mutator = Mutator(chosen, fields)
    found = (_facts(mutator.mutate(Random(number))) for number in numbers)
    return [facts for facts in found if _is_small(facts)]


def _facts(seed: Seed) -> Facts:
    arch = Section(next(one.data for one in seeds() if one.name == seed.name), seed.address).arch
    assert arch is not None
    return gather(subject(data=seed.data, arch=arch, text=(0, 1 << 64))._replace(address=seed.address, is_movable=True))


def _is_small(facts: Facts) -> bool:
    size, rows = sum(one.size for one in facts.functions), sum(one.rows for one in facts.functions)
    near = all(abs(one.start) < _ADDRESSES for one in facts.functions)
    return near and size <= _MAX_BYTES and rows <= _MAX_ROWS


def compare(library: Library, numbers: Iterable[int], seen: Counter[str]) -> list[str]:
    """Compare the mutations of some numbers; return what the profile gets wrong.

    :param seen: counts the verdicts of the profile, with those of the library.
    """
    sections = damaged(library, numbers)
    wrong = []
    for number, (facts, answer) in enumerate(zip(sections, answers(library, sections))):
        judgement, _ = judge(facts, PROFILES[library.profile])
        read = isinstance(answer, list)
        whole = read and not any(answer)
        seen[f"{judgement.outcome.value}: {'whole' if whole else 'in part' if read else 'not'} read"] += 1
        if (judgement.outcome is Outcome.ACCEPTED and not whole) or (judgement.outcome is Outcome.LOSES and not read):
            rules = sorted({rule.id for one in facts.functions for rule, _ in one.broken})
            rules += sorted({finding.rule.id for finding in (*facts.section, *facts.order)})
            wrong.append(f"{number}: {judgement.outcome.value}, but the library says {answer}; rules {rules}")
    return wrong


def main() -> int:
    """Run the command; return its exit status: 1 if a profile is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.lint.libsframe")
    parser.add_argument("--count", type=int, default=20_000, metavar="N", help="how many sections (default: 20000)")
    options = parser.parse_args()
    status = 0
    for library in LIBRARIES:
        seen: Counter[str] = Counter()
        wrong = compare(library, range(options.count), seen)
        print("\n".join(wrong[:20]))
        print(f"{library.profile}: {len(wrong)} wrong of {sum(seen.values()):,}: {dict(seen)}")
        status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.exit(main())
