"""Shows the threads with equal stacks together: hundreds of threads of a server wait in the same place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sframe_unwind.report.stack import Stack


def grouped(stacks: Iterable[Stack]) -> list[Stack]:
    """Return each stack once, in the order of its first thread; the title names all of its threads.

    Stacks are equal if their frames have the same code and are unwound in the same way.
    """
    groups: dict[object, list[Stack]] = {}
    for stack in stacks:
        frames = tuple((frame.pc, frame.function, frame.unwinder, frame.line) for frame in stack.frames)
        groups.setdefault((frames, stack.end, stack.signal, stack.not_stopped), []).append(stack)
    return [same[0]._replace(title=_title(same)) if len(same) > 1 else same[0] for same in groups.values()]


def _title(stacks: Sequence[Stack]) -> str:
    by_name: dict[str, list[int]] = {}
    for stack in stacks:
        by_name.setdefault(stack.name, []).append(int(stack.thread))
    names = "; ".join(f'"{name}" {_ranges(numbers)}' for name, numbers in by_name.items())
    first = stacks[0]
    return ", ".join(filter(None, (f"{len(stacks)} threads: {names}", first.signal, first.not_stopped)))


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers as text, such as ``3, 7-9``."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return ", ".join("-".join(map(str, one)) for one in ranges)
