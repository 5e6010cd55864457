"""Runs instructions and collects the claims that do not hold."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from lab.code.witness.claims import Broken, Claims
from lab.code.witness.driver import AT, Case, Driver, Outcome
from sframe_unwind.code.decode.disassembly import Disassembler
from sframe_unwind.code.decode.instruction import PC_RELATIVE, Instruction, Kind
from sframe_unwind.code.decode.lifting import Lifter
from sframe_unwind.code.decode.machines import MACHINES

_LEFT_OUT = (Kind.SYSTEM, Kind.STOP)
_FAR = (0xC0, 0xC4, 0xC6, 0xCC)
"""First bytes of instructions of s390x with a distance of 32 bits."""
_ENDING = re.compile(
    r"popf|iret|(wr[fg]s|rd[fg]s|pop +%[fg]s|l[fg]s|mov\w* .*%[fg]s$|int|syscall|sysenter|svc|hvc|smc)"
)
"""Instructions after which the driver cannot continue, because they change registers that it needs."""
_UNDEFINED = re.compile("i?div[bwlq]? ")
"""AMD64's division leaves the condition code undefined, so no claim about it is checked."""
_REPORTED = 1
"""Number of steps of each instruction that are also checked here."""


class Witness:
    """Checks the lifter of one machine.

    :param each: number of executions of an instruction.
    """

    def __init__(self, machine: str, each: int = 8) -> None:
        self.name = machine
        self.lifter = Lifter(MACHINES[machine])
        self.claims = Claims(self.lifter.machine)
        self.driver = Driver(machine)
        self._text = Disassembler(self.lifter.machine)
        self._each = each
        self.broken: dict[tuple[str, str], tuple[bytes, Broken]] = {}
        """The first instruction of each kind, by mnemonic and kind of claim."""
        self.steps = 0
        self.instructions: Counter[str] = Counter()
        """Numbers of instructions that were executed, refused by the processor, and left out."""

    def __enter__(self) -> Witness:
        return self

    def __exit__(self, *error: object) -> None:
        self.driver.__exit__(*error)

    def check(self, encodings: Iterable[tuple[bytes, int]]) -> None:
        """Execute instructions, each with a seed for its states; compare the claims with their effects."""
        for _ in self.outcomes(encodings):
            pass

    def outcomes(self, encodings: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, Outcome]]:
        """Do the same; yield each instruction with the result, without those that are left out."""
        running: deque[tuple[Instruction, bytes, str]] = deque()
        for outcome in self.driver.run(self._cases(encodings, running)):
            instruction, raw, text = running.popleft()
            self.steps += outcome.executed
            self.instructions["executed" if outcome.executed else "refused"] += 1
            found = list(self.claims.broken(instruction, outcome.steps, not _UNDEFINED.match(text)))
            if outcome.against and not found:
                found.append(Broken("the driver finds a claim broken, and Claims does not", f"{outcome.against} steps"))
            for broken in found:
                self.broken.setdefault((text.split()[0], broken.what), (raw, broken))
            yield raw, outcome

    def _cases(
        self, encodings: Iterable[tuple[bytes, int]], running: deque[tuple[Instruction, bytes, str]]
    ) -> Iterator[Case]:
        for raw, seed in encodings:
            instruction, text = self.lifter.instruction(raw, 0), self._text.text(raw, AT)
            if self.is_left_out(raw):
                self.instructions["left out"] += 1
                continue
            running.append((instruction, raw, text))
            words = self.claims.words.of(instruction, not _UNDEFINED.match(text))
            yield Case(raw, self._each, seed, words, _REPORTED)

    def is_left_out(self, raw: bytes) -> bool:
        """Return whether the driver cannot execute an instruction, or cannot continue after it."""
        instruction, text = self.lifter.instruction(raw, 0), self._text.text(raw, AT)
        # QEMU 7.2 takes a distance of more than 2 GiB as a negative one.
        is_far = self.lifter.machine.max_size == 6 and len(raw) == 6 and raw[0] in _FAR and 0x40 <= raw[2] < 0xC0
        targets = (*(leaving.target for leaving in instruction.exits), instruction.target)
        is_within = any(
            target is not None and target[0] == PC_RELATIVE and -3 < target[1] < len(raw) for target in targets
        )
        # The driver's own memory is at that segment's base, and from there on with a small number in the register.
        is_of_thread = bool(instruction.stores) and "%fs:" in text
        return instruction.kind in _LEFT_OUT or is_far or is_within or is_of_thread or bool(_ENDING.match(text))

    def summary(self, title: str) -> str:
        """Return the numbers of executed instructions."""
        counts = ", ".join(f"{number} {name}" for name, number in sorted(self.instructions.items()))
        return f"{title}: {counts}; {self.steps} steps; {len(self.broken)} kinds of broken claims"

    def lines(self) -> Iterator[str]:
        """Yield the broken claims."""
        for (mnemonic, what), (raw, broken) in sorted(self.broken.items()):
            text = self._text.text(raw, AT)
            yield f"{mnemonic}: {what}: {raw.hex()} {text}: {broken.detail}"
