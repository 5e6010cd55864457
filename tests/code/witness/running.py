"""Runs instructions and collects the claims that do not hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sframe_unwind.code.disassembly import Disassembler
from sframe_unwind.code.instruction import PC_RELATIVE, Kind
from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import MACHINES
from tests.code.witness.claims import Broken, Claims
from tests.code.witness.driver import AT, Case, Driver

_LEFT_OUT = (Kind.SYSTEM, Kind.STOP)
_FAR = (0xC0, 0xC4, 0xC6, 0xCC)
"""First bytes of instructions of s390x with a distance of 32 bits."""
_ENDING = re.compile(
    r"popf|iret|(wr[fg]s|rd[fg]s|pop +%[fg]s|l[fg]s|mov\w* .*%[fg]s$|int|syscall|sysenter|svc|hvc|smc)"
)
"""Instructions after which the driver cannot go on, for they change what it needs itself."""
_UNDEFINED = re.compile("i?div[bwlq] ")
"""AMD64's division leaves the condition code undefined: nothing that looks at it is claimed to be right."""


class Witness:
    """Checks the lifter of one machine.

    :param each: how often an instruction is executed.
    """

    def __init__(self, machine: str, each: int = 8) -> None:
        self.name = machine
        self.lifter = Lifter(MACHINES[machine])
        self._claims = Claims(self.lifter.machine)
        self._driver = Driver(machine)
        self._text = Disassembler(self.lifter.machine)
        self._each = each
        self.broken: dict[tuple[str, str], tuple[bytes, Broken]] = {}
        """The first instruction of each kind, by mnemonic and kind of claim."""
        self.steps = 0
        self.instructions: Counter[str] = Counter()
        """How many were executed, refused by the processor, and left out."""

    def __enter__(self) -> Witness:
        return self

    def __exit__(self, *error: object) -> None:
        self._driver.__exit__(*error)

    def check(self, raw: bytes, seed: int) -> list[Broken]:
        """Execute an instruction; return which claims about it do not hold."""
        instruction = self.lifter.instruction(raw, 0)
        text = self._text.text(raw, AT)
        # QEMU 7.2 takes a distance of more than 2 GiB for a negative one.
        is_far = self.lifter.machine.max_size == 6 and len(raw) == 6 and raw[0] in _FAR and 0x40 <= raw[2] < 0xC0
        targets = (*(leaving.target for leaving in instruction.exits), instruction.target)
        is_within = any(
            target is not None and target[0] == PC_RELATIVE and -3 < target[1] < len(raw) for target in targets
        )
        if instruction.kind in _LEFT_OUT or is_far or is_within or _ENDING.match(text):
            self.instructions["left out"] += 1
            return []
        # A refused instruction is refused at once: one step tells.
        steps = [step for step in self._driver.run(Case(raw, self._each, seed)) if step.is_executed]
        self.steps += len(steps)
        self.instructions["executed" if steps else "refused"] += 1
        found = list(self._claims.broken(instruction, steps, not _UNDEFINED.match(text)))
        mnemonic = text.split()[0]
        for broken in found:
            self.broken.setdefault((mnemonic, broken.what), (raw, broken))
        return found

    def summary(self, title: str) -> str:
        """Return how much was executed."""
        counts = ", ".join(f"{number} {name}" for name, number in sorted(self.instructions.items()))
        return f"{title}: {counts}; {self.steps} steps; {len(self.broken)} kinds of broken claims"

    def lines(self) -> Iterator[str]:
        """Yield the broken claims."""
        for (mnemonic, what), (raw, broken) in sorted(self.broken.items()):
            text = self._text.text(raw, AT)
            yield f"{mnemonic}: {what}: {raw.hex()} {text}: {broken.detail}"
