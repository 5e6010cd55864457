"""Finds the rules of a function where other functions call it, or jump into it, after its start."""

from __future__ import annotations

from collections.abc import Iterator

from sframe_unwind.code.image.code_image import CodeImage
from sframe_unwind.code.image.ranges import CodeRange
from sframe_unwind.code.interpret.interpretation import Interpreter
from sframe_unwind.code.judge.judgement import Judge
from sframe_unwind.code.rows.function import FoundRule
from sframe_unwind.code.rows.whole_file import followed

_AROUND = 1 << 17
"""Number of bytes before and after a function in which jumps into it are looked for."""
_MOST_FOLLOWED = 8
"""Maximum number of functions that are followed into another one."""

Rules = dict[int, "FoundRule | None"]


def rules_elsewhere(
    interpreter: Interpreter, function: CodeRange, parts: frozenset[CodeRange], max_size: int
) -> Rules | None:
    """Return the rules of a function when others enter it after its start; ``None``: they are not known.

    :param parts: functions to which it leads itself: what returns from them to it may be a part of it.
    :param max_size: maximum size in bytes of a function that is followed.
    """
    others = {other for at in _sources(interpreter, function) if (other := interpreter.ranges.find(at)) is not None}
    others -= {function, *parts}
    if len(others) > _MOST_FOLLOWED or any(other.end - other.start > max_size for other in others):
        return None
    found: Rules = {}
    for other in sorted(others):
        if interpreter.image.plt(other.start) is None:
            followed(interpreter, Judge(interpreter.frame), other, found)
    return {pc: rule for pc, rule in found.items() if function.start <= pc < function.end}


def _sources(interpreter: Interpreter, function: CodeRange) -> Iterator[int]:
    """Yield the addresses of what looks like a direct jump or call to code after the start of a function."""
    image: CodeImage = interpreter.image
    section = image.section(function.start)
    if section is None:
        return
    start = max(section.start, (function.start - _AROUND) & ~7)
    code = section.contents[start - section.start : function.end + _AROUND - section.start]
    for at, target in interpreter.machine.jumps(bytes(code)):
        if function.start < start + target < function.end:
            yield start + at
