"""Counts what is known of opcodes, and whether that was executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from lab.code.opcodes.disassembled import Decoded
from lab.code.opcodes.tables import Opcode
from lab.code.witness.running import Witness
from sframe_unwind.code.decode.instruction import Kind

STATUSES = ("executed", "unknown", "refused", "left out", "not encoded")
"""An opcode counts as the first of these that one of its encodings is.

After an *unknown* instruction, the check assumes nothing about registers and memory.  The processor *refuses*
instructions that it does not have, and those that only an operating system may execute.  The witness leaves out system
calls and what changes the base of its own memory.  An opcode that is *not encoded* does not exist in 64-bit mode, or no
random bytes were it.
"""


class Counted:
    """The opcodes of a machine.

    :param found: the encodings of each opcode.
    """

    def __init__(self, witness: Witness, found: Mapping[Opcode, Sequence[Decoded]], random_: Random) -> None:
        self._witness = witness
        self._encodings = [one for encodings in found.values() for one in encodings]
        known = dict.fromkeys(one.raw for one in self._encodings if self._is_known(one.raw))
        cases = [(raw, random_.getrandbits(60)) for raw in known]
        self._executed = {raw: bool(outcome.executed) for raw, outcome in witness.outcomes(cases)}
        self._statuses = {opcode: self._first(encodings) for opcode, encodings in found.items()}
        self._others = [one for one in self._encodings if self._has_another_size(one.raw)]

    @property
    def has_false(self) -> bool:
        """Whether a claim does not hold, or an instruction has another size by objdump."""
        return bool(self._witness.broken or self._others)

    def numbers(self) -> list[int]:
        """Return the numbers of opcodes, of those with each status, of encodings, executions and false claims."""
        counts = Counter(self._statuses.values())
        by_status = [counts[status] for status in STATUSES]
        false = len(self._witness.broken) + len(self._others)
        return [len(self._statuses), *by_status, len(self._encodings), self._witness.steps, false]

    def lines(self) -> Iterator[str]:
        """Yield the false claims, and the mnemonics of the opcodes that are neither executed nor unknown."""
        for line in self._witness.lines():
            yield f"false: {line}"
        for one in self._others:
            yield f"another size: {one.raw.hex()} {' '.join(sorted(one.words))}"
        for wanted in STATUSES[2:]:
            names = sorted({opcode.mnemonic for opcode, status in self._statuses.items() if status == wanted})
            yield f"{wanted}: {' '.join(names)}"

    def _first(self, encodings: Sequence[Decoded]) -> str:
        statuses = {self._status(one.raw) for one in encodings}
        return next((status for status in STATUSES if status in statuses), STATUSES[-1])

    def _status(self, raw: bytes) -> str:
        if not self._is_known(raw):
            return "unknown"
        if raw not in self._executed:
            return "left out"
        return "executed" if self._executed[raw] else "refused"

    def _is_known(self, raw: bytes) -> bool:
        found = self._witness.lifter.instruction(raw, 0)
        return found.size > 0 and found.kind is not Kind.STOP and found.is_whole

    def _has_another_size(self, raw: bytes) -> bool:
        return self._is_known(raw) and self._witness.lifter.instruction(raw, 0).size != len(raw)
