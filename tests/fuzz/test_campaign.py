"""A short fuzzing campaign, and a check that a campaign finds a planted error."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from lab.fuzz import cfi, file_fields, file_seeds, files, perf, readers, source, target
from lab.fuzz.campaign import TARGETS
from lab.fuzz.fields import fields
from lab.fuzz.mutations import Mutator
from lab.fuzz.seeds import Seed, seeds
from sframe_unwind.sframe.section import Section
from tests.hanging import HANG
from tests.missing import toolchain_needed

CHECKOUT = Path(__file__).resolve().parents[2]
CAMPAIGNS = [
    ("sframe", 12_000),
    ("cfi", 12_000),
    ("files", 400),
    ("perf", 1_000),
    ("readers", 1_000),
    ("source", 1_000),
]


with toolchain_needed():
    SECTIONS, TABLES, FILES, RECORDINGS = seeds(), cfi.seeds(), files.seeds(), perf.seeds()


@pytest.mark.parametrize(("kind", "count"), CAMPAIGNS)
def test_a_short_campaign(kind: str, count: int) -> None:
    """It runs in other processes, whose time and memory are limited."""
    options = ["--what", kind, "--count", str(count), "--first", "1000000000", "--jobs", "1"]
    command = [sys.executable, "-m", "lab.fuzz", *options]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count:,} tried" in done.stdout
    assert done.stdout.endswith("\n0 failures\n")


@pytest.mark.parametrize("seed", SECTIONS, ids=lambda seed: seed.name.replace(" ", "-"))
def test_an_undamaged_section_is_answered(seed: Seed) -> None:
    seen: Counter[str] = Counter()
    target.exercise(seed, seen)
    assert seen["answered"] == 1
    assert seen["rows"] > 0
    assert seen["lookups answered"] > 0
    assert not seen["functions refused"]
    assert not seen["lookups refused"]


@pytest.mark.parametrize("seed", SECTIONS, ids=lambda seed: seed.name.replace(" ", "-"))
def test_the_fields_are_all_there_is(seed: Seed) -> None:
    """Every byte belongs to a field, except for the auxiliary header and the gaps between tables."""
    section = Section(seed.data, seed.address)
    covered = {at for field in fields(seed) for at in range(field.offset, field.offset + field.size)}
    unknown = len(seed.data) - len(covered)
    extra = sum(table.header.aux_size for table in section.tables)
    assert unknown <= extra + 8 * len(section.tables)
    assert {field.byteorder for field in fields(seed)} == {section.tables[0].header.byteorder}


def test_the_same_number_makes_the_same_input() -> None:
    assert target.made(7) == target.made(7)
    assert len({target.made(number).data for number in range(100)}) > 95


@pytest.mark.parametrize(
    ("kind", "outcomes"),
    [
        ("sframe", ("answered", "rejected", "functions refused", "lookups refused", "end: corrupt data")),
        ("cfi", ("answered", "rejected", "FDEs refused", "functions refused", "lookups refused", "no rule")),
    ],
)
def test_the_inputs_are_of_every_seed_and_kind(kind: str, outcomes: tuple[str, ...]) -> None:
    seen: Counter[str] = Counter()
    for number in range(2000):
        section = TARGETS[kind].made(number)
        seen[section.name] += 1
        TARGETS[kind].exercise(section, seen)
    assert {seed.name for seed in TARGETS[kind].seeds()} <= set(seen)
    for what in outcomes:
        assert seen[what] > 20, what


@pytest.mark.parametrize("seed", TABLES, ids=lambda seed: seed.name.replace(" ", "-"))
def test_undamaged_cfi_is_answered(seed: Seed) -> None:
    seen: Counter[str] = Counter()
    cfi.exercise(seed, seen)
    assert seen["answered"] == 1
    assert seen["rules"] > 0
    assert seen["lookups answered"] > 0
    assert not any(number for what, number in seen.items() if what.endswith("refused"))


def test_undamaged_debug_information_has_places() -> None:
    by_file = {}
    for seed in source.seeds():
        seen: Counter[str] = Counter()
        source.exercise(seed, seen)
        assert seen["places"] > 0, seed.name
        by_file[seed.name.partition(" ")[2]] = seen["places"]
    assert len(by_file) == 7
    assert by_file["version 5"] == by_file["version 4"] == by_file["version 2"] == by_file["compressed"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("while True: pass", "_TooSlow: over the limit of processor time"),
        ("bytearray(300 << 20)", "MemoryError"),
    ],
)
def test_a_campaign_finds(fault: str, said: str) -> None:
    """It finds planted errors of each kind: an undocumented exception, a hang, too much memory."""
    program = f"""
from lab.fuzz import campaign
def exercise(section, seen):
    {fault}
campaign.target.exercise = exercise
campaign.prepare()
print(campaign.run([3]).failures[0].what)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, timeout=HANG, check=True
    )
    assert done.stdout.startswith(said), done.stdout


def test_splicing_joins_two_sections() -> None:
    """One mutation uses another seed; the counts above show that the others work."""
    mutator = Mutator(seeds(), fields)
    data = bytearray(seeds()[0].data)
    mutator.splice(Random(1), data)
    assert any(bytes(data[-20:]) == seed.data[-20:] for seed in seeds()[1:])


@pytest.mark.parametrize("seed", FILES, ids=lambda seed: seed.name.replace(" ", "-"))
def test_undamaged_file_is_answered(seed: Seed) -> None:
    seen: Counter[str] = Counter()
    files.exercise(seed, seen)
    for command in ("dump: 2", "verify: 2", "lint: 2"):
        # One object file has nothing but .debug_frame.
        assert not seen[command] or "compressed" in seed.name or "without" in seed.name
    assert seen["convert: 0"] == 1 or "without" not in seed.name
    # A program of another build is not used for a core file.
    abi = seed.name.split()[-1]
    own = "core" in seed.name or seed.data == file_seeds.program(abi).read_bytes()
    assert not seen["backtrace: 2"] or not own
    assert any(name.endswith((": 0", ": 1")) for name in seen)


@pytest.mark.parametrize("number", [5001858, 5002803, 5050008, 5084283])
def test_symbols_in_memory_that_took_too_much(number: int) -> None:
    """A damaged hash table claims four thousand million symbols, and all memory is readable."""
    program = f"from lab.fuzz import campaign; campaign.prepare('readers'); print(campaign.run([{number}], 'readers'))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=HANG, check=True)
    assert "failures=()" in done.stdout


UNDAMAGED = {
    "answers": {"debuginfo", "executable", "missing", "refused"},
    "archives": {"read"},
    "embedded": {"names", "none"},
    "loaded": {"names"},
    "perf_maps": {"names", "none"},
}
"""The results for undamaged inputs of each kind; some seeds are unusual answers of servers, or unusual files."""


@pytest.mark.parametrize("kind", readers.KINDS, ids=lambda kind: kind.__name__.rpartition(".")[2])
def test_undamaged_input_is_read(kind: ModuleType) -> None:
    seen: Counter[str] = Counter()
    first = 212 * len(readers.KINDS) + readers.KINDS.index(kind)
    outcomes = {kind.exercise(seed._replace(address=first), seen) for seed in kind.seeds()}
    outcomes |= {kind.exercise(seed._replace(address=first + 10), seen) for seed in kind.seeds()}
    assert outcomes == UNDAMAGED[kind.__name__.rpartition(".")[2]]


def test_fields_are_in_the_inputs() -> None:
    cases = [(seed, file_fields.fields(seed), 30) for seed in files.seeds()]
    cases += [(seed, kind.fields(seed), 10) for kind in readers.KINDS for seed in kind.seeds()]
    for seed, found, least in cases:
        assert len(found) > least
        assert all(0 <= field.offset <= field.offset + field.size <= len(seed.data) for field in found)


@pytest.mark.parametrize("seed", RECORDINGS, ids=lambda seed: seed.name.replace(" ", "-"))
def test_an_undamaged_recording_is_answered(seed: perf.Input) -> None:
    """By SFrame, all stacks of programs are complete."""
    seen: Counter[str] = Counter()
    perf.exercise(seed._replace(number=1), seen)
    has_program = seed.name.startswith("free")
    assert seen["SFrame: complete"] == seen["samples unwound"]
    assert (seen["perf: 0"], seen["perf: 2"]) == (has_program, not has_program)


def test_a_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "lab.fuzz", "--what", "sframe", "--jobs", "1", "--log", str(log), "--count"]
    for count, said in (("1000", "1,000 tried"), ("2000", "2,000 tried")):
        done = subprocess.run([*command, count], cwd=CHECKOUT, capture_output=True, text=True, timeout=HANG, check=True)
        assert said in done.stdout
    assert len(log.read_text(encoding="utf-8").splitlines()) == 2
