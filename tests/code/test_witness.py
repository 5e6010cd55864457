"""What the lifter claims of instructions holds where these are executed; `python -m tests.code.witness` runs more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import pytest

from tests.code.witness.encodings import generated, libraries, of_file
from tests.code.witness.running import Witness
from tests.missing import absent, toolchain_needed

MACHINES = ("amd64", "aarch64", "s390x")
GENERATED, OF_A_LIBRARY, SEED = 700, 500, 1

KNOWN = {
    "amd64": """
        0fa2 0f01f9 c8080001 0fa0 0fa8 0fae20 0fae00 db3c24 dd3424 d93424 f348ab f3aa f348a5 f2ae 480fb3d4
        0fb3dc c5ae11cf f3480f1ec8 660f3a63c108 480fc708 0f01d0 f20fb1ce 62f17c4811442401
        0fbed4 f30f1e936f3da92e
    """,
    "aarch64": """
        618120f8 e00320f8 e1ff21c8 e10320f8 e0ffa0c8 207c20d8 e10300a8 e00b00f8 e003409d 5f541f91 e10b20d9
        ff573f04 5b562b04 ff4300d1 e0031f8b 9f2103d5 1f2103d5 82740bd5 000038d5 e4003bd5
    """,
    "s390x": """
        d207f028f0a0 d607f028f0a0 d407f028f0a0 dc07f028f0a0 e807f028f0a0 f277f028f0a0 de07f028f0a0
        df07f028f0a0 b205f0a0 b2b0f0a0 b27cf0a0 cc6653d0d65c b911005f 0e24 a8240000 b2550024 b3990012 b93e0024
        dd07f0281000 d007f0281000 eb8e24000000
    """,
}
"""Instructions whose effects were once passed over, and those with which VEX is wrong itself."""


@pytest.fixture(params=MACHINES)
def witness(request: pytest.FixtureRequest) -> Iterator[Witness]:
    with toolchain_needed():
        found = Witness(str(request.param))
    with found:
        yield found


def test_the_claims_about_random_encodings_hold(witness: Witness) -> None:
    random_ = random.Random(SEED)
    for raw in islice(generated(witness.lifter.machine, random_), GENERATED):
        witness.check(raw, random_.getrandbits(60))
    assert not list(witness.lines())
    assert witness.instructions["executed"] > GENERATED // 2


def test_the_claims_about_a_library_hold(witness: Witness) -> None:
    paths = libraries(witness.name)
    if not paths:
        absent(f"no library of {witness.name} is installed: its instructions stay untested")
    random_ = random.Random(SEED)
    every = [raw for path in paths[:12] for raw in of_file(path, witness.lifter)]
    for raw in random_.sample(every, min(OF_A_LIBRARY, len(every))):
        witness.check(raw, random_.getrandbits(60))
    assert not list(witness.lines())
    assert witness.instructions["executed"] > min(OF_A_LIBRARY, len(every)) // 2


def test_the_claims_about_instructions_that_were_passed_over_hold(witness: Witness) -> None:
    for number, raw in enumerate(map(bytes.fromhex, KNOWN[witness.name].split())):
        witness.check(raw, number)
    assert not list(witness.lines())
    assert witness.instructions["executed"] > len(KNOWN[witness.name].split()) // 2
