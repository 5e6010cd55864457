"""Converts all samples between the versions of SFrame, and from their DWARF CFI.

    python -m lab.convert.samples [--jobs N]

builds missing samples, and takes some minutes; the tests do the same for a part of the samples.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from sframe_unwind import elf
from sframe_unwind.convert.source import DWARF, SFRAME
from sframe_unwind.convert.to_sframe import COPY, Wanted, convert_to_sframe
from sframe_unwind.sframe.listing import listed_functions, unrolled
from sframe_unwind.verify import verify
from tests.samples.build import build
from tests.samples.catalogue import SAMPLES, Build, all_builds

Rules = dict[int, object]
"""The rules of a file's SFrame, by address."""


class Account(NamedTuple):
    """The results for the files of some builds."""

    conversions: int
    compared: int
    """Number of addresses."""
    losses: collections.Counter[str]
    """Number of losses by conversion and reason."""
    errors: list[str]


def rules(path: Path) -> Rules:
    """Return the rule for each byte of code: it is the same whether a mask FDE or a plain one describes the byte."""
    said: Rules = {}
    for section in elf.load(path, lazy=False):
        for function in listed_functions([section]):
            starts, rows = unrolled(function, function.start, function.end)
            for start, end, rule in zip(starts, [*starts[1:], function.fde.size], rows):
                for offset in range(start, min(end, function.fde.size)):
                    said[function.start + offset] = function.fde.signal, function.fde.pauth_key, rule
    return said


def account(wanted: Build) -> Account:
    """Convert a sample's executable and libraries there and back, and compare the result with the original."""
    program = build(wanted.name, wanted.abi, wanted.version, wanted.variant, wanted.pie)
    whole = Account(0, 0, collections.Counter(), [])
    with tempfile.TemporaryDirectory() as folder:
        for path in (program, *sorted(program.parent.glob("*.so"))):
            whole = total([whole, _there_and_back(path, Path(folder), wanted.version)])
            if not SAMPLES[wanted.name].sframe_only:
                whole = total([whole, _from_dwarf(path, Path(folder))])
    return whole


def _there_and_back(path: Path, folder: Path, version: int) -> Account:
    whole, before = Account(0, 0, collections.Counter(), []), rules(path)
    source = path
    for step, to in enumerate((3, 2, 3) if version < 3 else (2, 3)):
        output = folder / f"{path.name}.{step}"
        report = convert_to_sframe(source, output, Wanted(to, form=COPY, source=SFRAME))
        for loss, _ in report.losses:
            for pc in range(loss.start, loss.end):
                before.pop(pc, None)
        reasons = collections.Counter(f"{version} -> {to}: {_kind(named.loss.reason)}" for named in report.losses)
        whole = total([whole, Account(1, report.addresses_compared, reasons, list(report.problems))])
        version, source = to, output
    if rules(source) != before:
        whole.errors.append(f"{path}: other rules than before")
    return whole


def _from_dwarf(path: Path, folder: Path) -> Account:
    output = folder / f"{path.name}.dwarf"
    report = convert_to_sframe(path, output, Wanted(source=DWARF))
    verdict = verify(output)
    reasons = collections.Counter(f"DWARF -> 3: {_kind(named.loss.reason)}" for named in report.losses)
    errors = [f"{path}: {entry}" for entry in verdict.disagreements]
    if verdict.sframe_only or verdict.dwarf_only != len(report.losses):
        errors.append(f"{path}: {verdict.dwarf_only} functions in DWARF only, {len(report.losses)} are named")
    return Account(1, report.addresses_compared, reasons, errors)


def _kind(reason: str) -> str:
    """Return a reason without the offset of the row."""
    return reason.partition(": ")[2] if reason.startswith("at +") else reason


def total(accounts: list[Account]) -> Account:
    """Return the sum of accounts."""
    return Account(
        sum(one.conversions for one in accounts),
        sum(one.compared for one in accounts),
        sum((one.losses for one in accounts), collections.Counter()),
        [error for one in accounts for error in one.errors],
    )


def main() -> int:
    """Convert every build and print the account; return exit status 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2, help="builds at the same time (default: 2)")
    builds, started = list(all_builds()), time.monotonic()
    with ProcessPoolExecutor(parser.parse_args().jobs) as pool:
        whole = total(list(pool.map(account, builds, chunksize=4)))
    seconds = time.monotonic() - started
    print(f"{len(builds)} builds, {whole.conversions} conversions, {seconds:.0f} s")
    print(f"{whole.compared:6} addresses compared")
    for reason, count in sorted(whole.losses.items()):
        print(f"{count:6} left out: {reason}")
    print("\n".join([f"{len(whole.errors):6} errors", *whole.errors]))
    return 1 if whole.errors else 0


if __name__ == "__main__":
    sys.exit(main())
