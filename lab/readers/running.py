"""Runs readers on cases, and judges their answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from lab.readers.corpus import Case
from tests.hanging import hang_after

CHECKOUT = Path(__file__).resolve().parents[2]
_SECONDS = hang_after(10)


class Outcome(str, Enum):
    """The outcome of a case in a reader."""

    RIGHT = "right"
    """The reader finds the expected row at each address."""
    LOSES = "loses"
    """It finds no row at some addresses that have one."""
    WRONG = "wrong"
    """It finds another row at some address, or one where there is none."""
    REFUSES = "refuses"
    """It takes nothing of the section."""
    CRASHES = "crashes"
    """It ends by a signal, or does not end."""
    READS = "reads"
    """It answers for a malformed section, for which no answer is expected."""


class Reader(NamedTuple):
    """A program that reads sections, as :mod:`protocol` describes."""

    name: str
    command: Sequence[str]
    versions: frozenset[int]
    """The versions of the format that it is made for."""
    abis: frozenset[int]
    """The ABIs that it is made for; a reader compiled for its own machine has those of AMD64's byte order."""
    shows_signed: bool = True
    """The reader reports which return addresses are signed."""
    profile: str | None = None
    """The name of its profile in ``lint``; ``None``: it has none."""
    swaps: bool = False
    """It swaps the bytes of a section for another machine before it reads it, and is stricter then."""

    @property
    def of_all_rows(self) -> Reader:
        """The reader, changed to read the rows of all functions too, as linkers do, where that is possible."""
        return self._replace(command=(*self.command, "rows")) if self.swaps else self

    def is_for(self, case: Case) -> bool:
        """Return whether the reader is made for the version and the ABI of a case."""
        return case.version in self.versions and case.abi in self.abis


class Result(NamedTuple):
    """The result of one case in one reader."""

    outcome: Outcome
    detail: str = ""


def adapter(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command of a module in :mod:`adapters`."""
    return (sys.executable, "-m", f"lab.readers.adapters.{module}", *arguments)


class Request(NamedTuple):
    """Addresses to look up in a section."""

    section: bytes
    address: int
    pcs: Sequence[int]


def ask(reader: Reader, requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Return the answers of a reader, as :mod:`protocol` describes them.

    :raises OSError: it does not answer each request.
    """
    lines = [json.dumps({"section": data.hex(), "address": at, "pcs": list(pcs)}) for data, at, pcs in requests]
    done = subprocess.run(
        reader.command,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        cwd=CHECKOUT,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(requests):
        raise OSError(
            f"{reader.name}: {len(answers)} answers to {len(requests)} sections: {done.stderr.strip()[-500:]}"
        )
    return answers


def run(reader: Reader, cases: Sequence[Case]) -> list[Result]:
    """Run a reader on cases.

    :raises OSError: it does not answer each of them.
    """
    answers = ask(reader, [Request(one.section, one.address, [pc for pc, _ in one.expected]) for one in cases])
    return [_judged(reader, case, answer) for case, answer in zip(cases, answers)]


def _judged(reader: Reader, case: Case, answer: dict[str, Any]) -> Result:
    if "crashed" in answer:
        return Result(Outcome.CRASHES, answer["crashed"])
    if "refused" in answer:
        return Result(Outcome.REFUSES, answer["refused"])
    if not case.is_valid:
        return Result(Outcome.READS)
    missing = ""
    if len(answer["rows"]) != len(case.expected):
        raise OSError(
            f"{reader.name}: {len(answer['rows'])} rows for the {len(case.expected)} addresses of {case.name}"
        )
    for (pc, wanted), got in zip(case.expected, answer["rows"]):
        if not reader.shows_signed:
            wanted, got = _without_sign(wanted), _without_sign(got)
        if got == wanted:
            continue
        detail = f"at {pc:#x} {_text(got)}, expected {_text(wanted)}"
        if got is not None and "error" not in got:
            return Result(Outcome.WRONG, detail)
        if wanted is not None:
            missing = missing or detail
    return Result(Outcome.LOSES, missing) if missing else Result(Outcome.RIGHT)


def _without_sign(row: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if row is None else {key: value for key, value in row.items() if key != "signed"}


def _text(row: dict[str, Any] | None) -> str:
    return "nothing" if row is None else ", ".join(f"{key} {value}" for key, value in row.items())
