"""Runs `verify` on all samples, and compares its output with the known errors of the producers.

    python3 -m lab.verify.samples [--jobs N]

builds what is not built yet and takes long; the tests do the same for a part of the samples.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from sframe_unwind.verify import verify
from sframe_unwind.verify.verdict import Outcome
from tests.samples.build import build, toolchain
from tests.samples.catalogue import SAMPLES, Build, all_builds
from tests.verify.producers import explained


class Account(NamedTuple):
    """The results for the files of one build."""

    compared: int
    """The number of addresses."""
    explained: collections.Counter[str]
    """How many disagreements each reason explains."""
    unexplained: list[str]
    """The disagreements that no known error explains."""


def account(wanted: Build) -> Account:
    """Verify a sample's executable and libraries."""
    program = build(wanted.name, wanted.abi, wanted.version, wanted.variant, wanted.pie)
    tools = toolchain(wanted.abi, wanted.version)
    result = Account(0, collections.Counter(), [])
    for path in (program, *sorted(program.parent.glob("*.so"))):
        verdict = verify(path)
        result = result._replace(compared=result.compared + verdict.addresses_compared)
        for entry in verdict.disagreements:
            reason = explained(tools, path, wanted.abi, wanted.version, entry)
            if reason:
                result.explained[reason] += 1
            else:
                result.unexplained.append(f"{path}: {entry}")
        for function in (one for one in verdict.functions if one.outcome is Outcome.IN_PART):
            result.unexplained.append(f"{path}: {function}")
        if not SAMPLES[wanted.name].sframe_only and verdict.count(Outcome.SFRAME_ONLY):
            result.unexplained.append(f"{path}: functions without CFI")
    return result


def comparable() -> list[Build]:
    """Return all builds that have DWARF CFI."""
    return [wanted for wanted in all_builds() if wanted.name != "free_sframe_only"]


def main() -> int:
    """Verify every build and print the account; the exit status is 1 if a disagreement is not explained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2, help="builds at the same time (default: 2)")
    builds, started = comparable(), time.monotonic()
    with ProcessPoolExecutor(parser.parse_args().jobs) as pool:
        whole = total(pool.map(account, builds, chunksize=4))
    print(f"{len(builds)} builds, {whole.compared} addresses compared, {time.monotonic() - started:.0f} s")
    for reason, count in sorted(whole.explained.items()):
        print(f"{count:6} {reason}")
    print("\n".join([f"{len(whole.unexplained):6} not explained", *whole.unexplained]))
    return 1 if whole.unexplained else 0


def total(accounts: Iterable[Account]) -> Account:
    """Return the sum of accounts."""
    whole = Account(0, collections.Counter(), [])
    for part in accounts:
        whole = Account(whole.compared + part.compared, whole.explained + part.explained, whole.unexplained)
        whole.unexplained.extend(part.unexplained)
    return whole


if __name__ == "__main__":
    sys.exit(main())
