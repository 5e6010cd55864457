"""The effects of an instruction are known only if VEX and capstone agree; each exemption from that is executed."""

from __future__ import annotations

import random

import pytest

from lab.code.witness.running import Witness
from sframe_unwind.code.decode import agreement
from sframe_unwind.code.decode.agreement import EXEMPTIONS, Exemption
from sframe_unwind.code.decode.instruction import RESULT, Kind
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES
from tests.missing import toolchain_needed

UNKNOWN = {
    "amd64": {
        "xrstors64 (%rdi)": "480fc71f",
        "wrssq %rax,(%rsp)": "480f38f60424",
    },
    "aarch64": {
        "sysl x29, #3, c7, c1, #1": "3d712bd5",
        "msr spsel, #0": "bf4000d5",
        "sys #3, c7, c7, #0, x3": "23770bd5",
        "hint #39": "ff2403d5",
    },
    "s390x": {"csst": "c83210002000", "lpdg": "c82530004000"},
}
"""Instructions whose effects one decoder, or both, do not have whole."""
NO_INSTRUCTIONS = {
    "mov %rdi,%r21 with REX2": "d51889fd",
    "movzbl (%r16),%ebp with REX2": "d590b628",
    "push %es, which 64-bit mode does not have": "06",
}


@pytest.mark.parametrize("machine", ["amd64", "aarch64", "s390x"])
def test_the_instructions_of_each_exemption_are_executed(machine: str) -> None:
    examples = [bytes.fromhex(one.example) for one in EXEMPTIONS if one.machine == machine]
    with toolchain_needed():
        witness = Witness(machine, 64)
    with witness:
        witness.check((raw, random.Random(1).getrandbits(60)) for raw in examples)
    assert not list(witness.lines())
    assert witness.instructions == {"executed": len(examples)}


@pytest.mark.parametrize("exemption", EXEMPTIONS, ids=lambda one: f"{one.machine}-{one.example}")
def test_each_exemption_is_needed(exemption: Exemption, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = bytes.fromhex(exemption.example)
    assert Lifter(MACHINES[exemption.machine]).lifted(raw).is_whole
    monkeypatch.delitem(agreement._PATTERNS, (exemption.machine, exemption.what))
    found = Lifter(MACHINES[exemption.machine]).lifted(raw)
    assert not found.is_whole or found.kind is Kind.STOP


@pytest.mark.parametrize(
    ("machine", "raw"), [(machine, raw) for machine, known in UNKNOWN.items() for raw in known.values()]
)
def test_what_one_decoder_does_not_have_is_unknown(machine: str, raw: str) -> None:
    found = Lifter(MACHINES[machine]).instruction(bytes.fromhex(raw), 0)
    assert found.size == len(raw) // 2
    assert not found.is_whole


@pytest.mark.parametrize("raw", NO_INSTRUCTIONS.values(), ids=NO_INSTRUCTIONS)
def test_what_a_lifter_does_not_know_ends_the_decoding(raw: str) -> None:
    found = Lifter(MACHINES["amd64"]).instruction(bytes.fromhex(raw), 0)
    assert found.kind is Kind.STOP
    assert not found.size


KNOWN: dict[str, dict[str, tuple[str, tuple[int, ...]]]] = {
    "amd64": {
        "{vex} vpmadd52luq (%rsi),%ymm1,%ymm3": ("c4e2f5b41e", ()),
        "{vex} vpmadd52huq %xmm8,%xmm1,%xmm9": ("c442f1b5c8", ()),
    },
    "aarch64": {
        "gcspopm x29": ("3d772bd5", (29,)),
        "gcsss2 x29": ("7d772bd5", (29,)),
        "gcspopm": ("3f772bd5", ()),
        "gcspushm x29": ("1d770bd5", ()),
        "gcsss1 x29": ("5d770bd5", ()),
    },
    "s390x": {
        "clfebr %r10,5,%f6,0": ("b39c50a6", (10,)),
        "clgdbr %r14,0,%f0,0": ("b3ad00e0", (14,)),
    },
}
"""Instructions that VEX does not know, and the general registers that they write."""


@pytest.mark.parametrize(("machine", "text"), [(machine, text) for machine, known in KNOWN.items() for text in known])
def test_what_an_instruction_writes_that_vex_does_not_know(machine: str, text: str) -> None:
    raw, registers = KNOWN[machine][text]
    found = Lifter(MACHINES[machine]).instruction(bytes.fromhex(raw), 0)
    assert found.size == len(raw) // 2
    assert found.is_whole
    assert tuple(number for number, _ in found.puts if number in MACHINES[machine].general) == registers
    assert not [place for place, _, _ in found.stores if place != RESULT]
