"""Shows single samples with their stacks, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sframe_unwind.perf.judging import Judged, Unwound, frames
from sframe_unwind.perf.names import Names

_NANOSECONDS = 1_000_000_000


def sample_text(unwound: Unwound, thread_name: str, event: str, names: Names) -> Iterator[str]:
    """Yield the lines of a sample: its stacks, each with the methods that give it."""
    sample = unwound.sample
    seconds, rest = divmod(sample.time, _NANOSECONDS)
    yield f"{thread_name or '?'} {sample.pid}/{sample.tid} {seconds}.{rest:09} {event}:"
    for methods, judged in _distinct(unwound):
        yield f"  {', '.join(methods)}: {judged.verdict.value}" + (f" ({judged.reason})" if judged.reason else "")
        for level, (pc, lookup) in enumerate(zip(judged.stack.pcs, frames(judged.stack))):
            name = names.find(unwound.space, lookup, sample.pid)
            yield f"    #{level:<3} {pc:#018x}  {name.function or '??'} ({name.module or '?'})"


def sample_json(unwound: Unwound, thread_name: str, event: str, names: Names) -> dict[str, Any]:
    """Return the JSON object of a sample."""
    sample = unwound.sample
    return {
        "event": event,
        "pid": sample.pid,
        "tid": sample.tid,
        "comm": thread_name or None,
        "time": sample.time,
        "stacks": [
            {
                "methods": methods,
                "verdict": judged.verdict.value,
                "reason": judged.reason or None,
                "frames": [
                    {"pc": pc, "function": name.function or None, "module": name.module or None}
                    for pc, lookup in zip(judged.stack.pcs, frames(judged.stack))
                    for name in [names.find(unwound.space, lookup, sample.pid)]
                ],
            }
            for methods, judged in _distinct(unwound)
        ],
    }


def _distinct(unwound: Unwound) -> list[tuple[list[str], Judged]]:
    """Return each stack once, with the names of its methods."""
    found: dict[object, tuple[list[str], Judged]] = {}
    for method, judged in unwound.by_method.items():
        key = judged.stack.pcs, judged.verdict, judged.reason
        found.setdefault(key, ([], judged))[0].append(method)
    return list(found.values())
