"""Direct jumps and calls are found by their bytes, and lead to where GNU as has put their targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from sframe_unwind.code.decode.machines import MACHINES
from sframe_unwind.elf import opened
from tests.code.assembled import assemble

JUMPS = {
    "amd64": "call 9f; jmp 9f; je 9f; jmp 1f; jne 1f; 1: nop; .skip 300,0x90; 9: ret",
    "aarch64": "bl 9f; b 9f; b.eq 9f; cbz x0,9f; cbnz w1,9f; tbz x2,#40,9f; tbnz w3,#3,9f; nop; 9: ret",
    "s390x": "brasl %r14,9f; jg 9f; jge 9f; bras %r5,9f; j 9f; jl 9f; nopr; 9: br %r14",
}
EXPECTED = {
    "amd64": {0: 321, 5: 321, 10: 321, 16: 20, 18: 20},
    "aarch64": dict.fromkeys(range(0, 28, 4), 32),
    "s390x": dict.fromkeys((0, 6, 12, 18, 22, 26), 32),
}
"""The offsets of the jumps, and those to which they lead."""


@pytest.mark.parametrize("machine", sorted(JUMPS))
def test_jumps_lead_to_their_targets(machine: str, tmp_path: Path) -> None:
    with opened(assemble(machine, f".text\n{JUMPS[machine]}\n", tmp_path / "jumps.o")) as binary:
        text = binary.named(".text")
        assert text is not None
        code = bytes(binary.contents(text))
    assert dict(MACHINES[machine].jumps(code)) == EXPECTED[machine]
