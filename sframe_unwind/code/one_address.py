"""Judges the rules for one address of a function whose bytes are at hand: what a debugger asks."""

from __future__ import annotations

from typing import NamedTuple

from sframe_unwind.arch import Arch
from sframe_unwind.code.explanation import Explainer
from sframe_unwind.code.image import CodeImage, CodeSection
from sframe_unwind.code.interpretation import Interpreter
from sframe_unwind.code.judgement import NOT_KNOWN, Judge, Judgement, Judgements
from sframe_unwind.code.lifting import Lifter
from sframe_unwind.code.machines import MACHINES
from sframe_unwind.code.ranges import CodeRange, CodeRanges
from sframe_unwind.code.state import State
from sframe_unwind.code.walk import walk
from sframe_unwind.unwind_rule import UnwindRule

_VALUES = ("cfa", "ra", "fp")
_SUFFIXES = (".cold", ".part")
"""Of the names that compilers give to what they split off a function."""


class AddressVerdict(NamedTuple):
    """What the code makes of one rule."""

    judgements: Judgements
    wrong: tuple[str, ...]
    """For each value that is wrong what the code has instead, and since which instruction."""

    def __str__(self) -> str:
        if self.wrong:
            return f"wrong: the code has {'; '.join(self.wrong)}"
        return self.judgements.worst.name.lower()


class FunctionCode:
    """One function, interpreted once, whatever is asked of it.

    :param start: address of its first byte.
    :param code: its bytes.
    :param name: empty where it is not known.
    :raises MissingExtraError: what decodes the code is not installed.
    """

    def __init__(self, arch: Arch, start: int, code: bytes, name: str = "") -> None:
        lifter = Lifter(MACHINES[arch.name])
        function = CodeRange(start, start + len(code))
        image = CodeImage([CodeSection(start, code, True, False)], "big" if arch.byteorder == "big" else "little")
        self._interpreter = Interpreter(image, lifter.machine, lifter, CodeRanges([function]), lambda _: ())
        # What a compiler split off a function is entered with the function's frame, which is not known here.
        is_part = any(suffix in name for suffix in _SUFFIXES)
        entry = {} if is_part else {start: self._interpreter.frame.entry()}
        self._run = self._interpreter.run(function, entry)
        self._judge = Judge(self._interpreter.frame)
        self._explainer = Explainer(self._interpreter)

    def verdict(self, pc: int, rule: UnwindRule) -> AddressVerdict:
        """Judge a rule for the instruction that contains an address."""
        found = self._find(pc)
        if found is None:
            return AddressVerdict(NOT_KNOWN, ())
        block, at, state = found
        judged = self._judge.judge(rule, state)
        if block in self._run.guessed or not self._run.complete:
            judged = judged if judged.worst is Judgement.PROVED else NOT_KNOWN
        wrong = []
        for what, judgement in zip(_VALUES, judged):
            if judgement is Judgement.WRONG:
                said = self._explainer.explain(what, rule, self._run, block, at, state)
                since = f" since `{said.origin.text}` at {said.origin.address:#x}" if said.origin is not None else ""
                wrong.append(said.code + since)
        return AddressVerdict(judged, tuple(wrong))

    def _find(self, pc: int) -> tuple[int, int, State] | None:
        """Return the block and the start of the instruction that contains an address, and the state before it."""
        sweep = self._interpreter.sweep_at(pc)
        for block in self._run.states:
            for at, state in walk(self._interpreter, self._run, block):
                if at <= pc < at + sweep.instruction(at).size:
                    return block, at, state
        return None
