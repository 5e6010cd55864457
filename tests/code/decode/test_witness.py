"""The lifter's claims about instructions hold when they are executed; `python -m lab.code.witness` runs more."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import pytest

from lab.code.witness.driver import Case
from lab.code.witness.encodings import generated, libraries, of_file
from lab.code.witness.running import Witness
from sframe_unwind.code.decode.instruction import ADD, CONSTANT, PC_RELATIVE, Instruction, Kind
from tests.missing import absent, toolchain_needed

MACHINES = ("amd64", "aarch64", "s390x")
GENERATED, OF_A_LIBRARY, DISTORTED = 1500, 1500, 300
"""Numbers of instructions of each machine."""
EACH, SEED = 128, 1

KNOWN = {
    "amd64": """
        0fa2 0f01f9 c8080001 0fa0 0fa8 0fae20 0fae00 db3c24 dd3424 d93424 f348ab f3aa f348a5 f2ae 480fb3d4
        0fb3dc c5ae11cf f3480f1ec8 660f3a63c108 480fc708 0f01d0 f20fb1ce 62f17c4811442401
        6261fd087ead28fbffff 6261fd087e6df8 6261fd087e6c8cf8 6261ff08116c2408 62617e09116ff0 62617d087e6e02
        62617c08176e02 6241fd08136c2402 6243fd08166dfe01 62637d08166c24fc01 62637d08156c24f801
        62637d08146c24f001 62637d08176c1cfc01 62e11e085845ea 62e21d08a945ea 62e1fd082e45f5 62e1ff00514df5
        0fbed4 f30f1e936f3da92e 66ffd0 66ffe7 66480fa0 660fa0 4c8035413d164aa3
    """,
    "aarch64": """
        618120f8 e00320f8 e1ff21c8 e10320f8 e0ffa0c8 207c20d8 e10300a8 e00b00f8 e003409d 5f541f91 e10b20d9
        ff573f04 5b562b04 ff4300d1 e0031f8b 9f2103d5 1f2103d5 82740bd5
        410820d9 ff1b20d9 41ec3fd9 412420d9 41f87fd9 ff1b60d9 411c60d9 4128a0d9 e32be0d9
        83c4ffd9 8ffa33bc 000038d5 e4003bd5 23740bd5
        24572504 1f543f04 7f507f04 e3537f04 6357bf04 e1e32204 e2e36004 e9e3af04 e8e3e404 08e0e404 ffe3a004
        4854bfe5 ff4782e5 e41f80e5 2f1dbee5 e0e3e3e5 61e468e4 61e4c7e4 61e462e5 61e400e4 e0ebbee5 a0e852e5
        a0e87ee4 a0ec9ee5 8040e5e5 80a0a5e5 4854bf85 e41f8085
        1f4000d5 3f4000d5 5f4000d5
    """,
    "s390x": """
        d207f028f0a0 d607f028f0a0 d407f028f0a0 dc07f028f0a0 e807f028f0a0 f277f028f0a0 de07f028f0a0
        df07f028f0a0 b205f0a0 b2b0f0a0 b27cf0a0 cc6653d0d65c b911005f 0e24 a8240000 b2550024 b3990012 b93e0024
        dd07f0281000 d007f0281000 eb8e24000000 eb18b0b800e3 eb87f0e800e3 eb45b13000e3
        e71af050003f b9930058 b99200fe d20710103010
    """,
}
"""Instructions whose effects were once missed, and instructions that VEX itself has wrong."""


@pytest.fixture(params=MACHINES)
def witness(request: pytest.FixtureRequest) -> Iterator[Witness]:
    with toolchain_needed():
        found = Witness(str(request.param), EACH)
    with found:
        yield found


def seeded(encodings: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    random_ = random.Random(SEED)
    return ((raw, random_.getrandbits(60)) for raw in encodings)


def of_libraries(witness: Witness, count: int) -> list[bytes]:
    paths = libraries(witness.name)
    if not paths:
        absent(f"no library of {witness.name} is installed: its instructions stay untested")
    seen: set[bytes] = set()
    every = [raw for path in paths[:12] for raw in of_file(path, witness.lifter, seen)]
    return random.Random(SEED).sample(every, min(count, len(every)))


def test_the_claims_about_random_encodings_hold(witness: Witness) -> None:
    encodings = generated(witness.lifter.machine, random.Random(SEED))
    witness.check(seeded(islice(encodings, GENERATED)))
    assert not list(witness.lines())
    assert witness.instructions["executed"] > GENERATED // 2


def test_the_claims_about_a_library_hold(witness: Witness) -> None:
    chosen = of_libraries(witness, OF_A_LIBRARY)
    witness.check(seeded(chosen))
    assert not list(witness.lines())
    assert witness.instructions["executed"] > len(chosen) // 2


def test_the_claims_about_instructions_that_were_passed_over_hold(witness: Witness) -> None:
    known = list(map(bytes.fromhex, KNOWN[witness.name].split()))
    witness.check(seeded(known))
    assert not list(witness.lines())
    assert witness.instructions["executed"] > len(known) // 2


def test_stores_to_the_memory_of_the_drivers_thread_are_left_out() -> None:
    """They overwrote the claims of later instructions: some of these were then reported as broken."""
    stores = ("6448894350", "644c897b58", "64410f114548", "6449c7452000000000")
    others = ("488b8d78ffffff", "0f45f3", "4c8d4160")
    with toolchain_needed():
        witness = Witness("amd64", EACH)
    with witness:
        witness.check(seeded(bytes.fromhex(raw) for _ in range(300) for raw in (*stores, *others)))
    assert not list(witness.lines())
    assert witness.instructions == {"executed": 900, "left out": 1200}


def test_the_driver_judges_steps_as_the_witness_does(witness: Witness) -> None:
    claimed = [
        (raw, claims)
        for raw in of_libraries(witness, DISTORTED)
        if not witness.is_left_out(raw)
        for claims in distorted(witness.lifter.instruction(raw, 0))
    ]
    cases = [Case(raw, 8, SEED, witness.claims.words.of(claims, True), reported=8) for raw, claims in claimed]
    judged = Counter(
        (step.is_against, bool(list(witness.claims.broken(claims, [step], True))))
        for (_, claims), outcome in zip(claimed, witness.driver.run(cases))
        for step in outcome.steps
    )
    assert judged.keys() == {(True, True), (False, False)}
    assert min(judged.values()) > DISTORTED


def distorted(instruction: Instruction) -> Iterator[Instruction]:
    """Yield an instruction, and copies of it in which one claim is missing or changed."""
    yield instruction
    puts, stores = instruction.puts, instruction.stores
    for at, (number, value) in enumerate(puts):
        yield instruction._replace(puts=puts[:at] + puts[at + 1 :], exits=())
        yield instruction._replace(puts=(*puts[:at], (number, (ADD, value, (CONSTANT, 1))), *puts[at + 1 :]))
    for at, (address, size, _) in enumerate(stores):
        yield instruction._replace(stores=stores[:at] + stores[at + 1 :], exits=())
        yield instruction._replace(stores=(*stores[:at], (address, size, (CONSTANT, 5)), *stores[at + 1 :]))
    if instruction.kind is Kind.NEXT:
        yield instruction._replace(kind=Kind.JUMP, target=(PC_RELATIVE, -instruction.size))
