"""Makes random functions: a prologue and its epilogue, lines between them, and one or two changes to the whole."""

from __future__ import annotations

import random
import re
from string import Formatter
from typing import Any

from lab.code.generated.vocabulary import Vocabulary

_HELPERS = ("helper_keeps", "helper", "helper", "helper_zeroes_fp", "helper_pops_16")
_HELPER_WEIGHTS = (6, 12, 12, 2, 1)
_MOST_LINES = 12
"""Maximum number of lines in a body."""
_DEEPEST = 2
"""Maximum nesting of blocks."""
_NUMBERS = {
    "k": range(-64, 72, 8),
    "u": (*range(0, 128, 16), 248, 272),
    "a": range(16, 112, 16),
    "n": (8, 16, -16),
    "i": (1, 2, 4, 5),
}
"""Numbers for the letters of :mod:`lab.code.generated.vocabulary`."""


class _Operands(Formatter):
    """Replaces the fields of a line by random operands."""

    def __init__(self, random_: random.Random, vocabulary: Vocabulary) -> None:
        self._random = random_
        self._vocabulary = vocabulary

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> str:  # noqa: ARG002  # as Formatter calls it
        choose = self._random.choice
        if key in ("r", "d", "e"):
            rare = 0.15 if key == "r" else 0.03
            words = self._vocabulary.pointers if self._random.random() < rare else self._vocabulary.registers
            return choose([word for word in words if key != "e" or word != "%r0"])
        if key == "s":
            copies = self._vocabulary.pointers * 3 + self._vocabulary.registers[1:3]
            return choose(copies)
        if key == "h":
            return self._random.choices(_HELPERS, _HELPER_WEIGHTS)[0]
        return str(choose(_NUMBERS[str(key)])) if key in _NUMBERS else str(kwargs[key])

    def format_field(self, value: Any, format_spec: str) -> str:
        return self._vocabulary.halves.get(value, value) if format_spec == "w" else str(value)


class Generator:
    """Makes the functions of one machine.

    :param random_: source of all random choices.
    """

    def __init__(self, random_: random.Random, vocabulary: Vocabulary) -> None:
        self._random = random_
        self._vocabulary = vocabulary
        self._operands = _Operands(random_, vocabulary)
        self._labels = 0

    def function(self) -> list[str]:
        """Return the lines of a function: each an instruction, or labels that end with a colon."""
        prologue, epilogue = self._random.choice(self._vocabulary.frames)
        body = self._block(self._random.randrange(1, _MOST_LINES), 0)
        if self._random.random() < 0.3:
            early = self._early_return(epilogue)
            place = self._random.randrange(len(body) + 1)
            body[place:place] = early
        lines = [self._vocabulary.compare, *prologue, *body, *epilogue]
        for _ in range(self._random.choice((0, 0, 0, 1, 1, 2))):
            self._change(lines)
        if any(re.match(self._vocabulary.aligns, line) for line in lines):
            above = self._vocabulary.above
            lines = [line for line in lines if line in (*prologue, *epilogue) or not re.search(above, line)]
        return [*lines, self._vocabulary.trap]

    def _early_return(self, epilogue: tuple[str, ...]) -> list[str]:
        """Return lines that leave the function on a condition."""
        label = self._label()
        return [*self._condition(label), *epilogue, f"{label}:"]

    def _condition(self, label: str) -> list[str]:
        return [self._line(part, label) for part in self._random.choice(self._vocabulary.conditions)]

    def _block(self, size: int, depth: int) -> list[str]:
        lines: list[str] = []
        while len(lines) < size:
            kind = self._random.random()
            if kind < 0.12 and depth < _DEEPEST:
                label = self._label()
                inner = self._block(self._random.randrange(1, 5), depth + 1)
                lines += [*self._condition(label), *inner, f"{label}:"]
            elif kind < 0.16 and depth < _DEEPEST:
                label = self._label()
                before, end = self._random.choice(self._vocabulary.loops)
                inner = self._block(self._random.randrange(1, 4), depth + 1)
                ends = [self._line(part.strip(), label) for part in end.split(";")]
                lines += [self._line(before, label), f"{label}:", *inner, *ends]
            else:
                source = self._vocabulary.risky if kind > 0.85 else self._vocabulary.plain
                lines.append(self._line(self._random.choice(source), ""))
        return lines

    def _change(self, lines: list[str]) -> None:
        """Remove a line, move it, repeat it, or replace it."""
        places = [place for place, line in enumerate(lines) if not line.endswith(":")]
        place = self._random.choice(places)
        kind = self._random.randrange(4)
        if kind == 0 and len(places) > 1:
            del lines[place]
        elif kind == 1:
            lines.insert(self._random.choice(places), lines.pop(place))
        elif kind == 2:
            lines.insert(place, lines[place])
        else:
            lines[place] = self._line(self._random.choice(self._vocabulary.risky), "")

    def _line(self, template: str, label: str) -> str:
        return self._operands.format(template, l=label)

    def _label(self) -> str:
        self._labels += 1
        return f".Lon{self._labels}"
