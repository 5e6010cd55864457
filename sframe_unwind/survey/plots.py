"""Draws distributions as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import median

from sframe_unwind.errors import counted

_BARS = 40
_WIDTH, _HEIGHT = 400, 130
_LEFT, _TOP, _BOTTOM = 8, 24, 22
"""Space for the texts, in pixels."""


def histogram(title: str, values: Sequence[float], low: float, high: float) -> str:
    """Return the distribution of values; values outside the range are counted in the first or the last bar."""
    counts = [0] * _BARS
    for value in values:
        counts[min(max(int((value - low) / (high - low) * _BARS), 0), _BARS - 1)] += 1
    most = max(counts) or 1
    step = (_WIDTH - 2 * _LEFT) / _BARS
    room = _HEIGHT - _TOP - _BOTTOM
    bars = []
    for number, count in enumerate(counts):
        if count:
            height = max(room * count / most, 1)
            first, last = (low + (high - low) * at / _BARS for at in (number, number + 1))
            bars.append(
                f'<rect x="{_LEFT + number * step:.1f}" y="{_TOP + room - height:.1f}" width="{step - 1:.1f}"'
                f' height="{height:.1f}"><title>{first:g} to {last:g}: {count}</title></rect>'
            )
    middle = f", median {median(values):.3g}" if values else ""
    files = counted(len(values), "file", spec=",")
    base = _HEIGHT - 6
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<text x="{_LEFT}" y="14">{escape(title)} ({files}{middle})</text>{"".join(bars)}'
        f'<text x="{_LEFT}" y="{base}">{low:g}</text>'
        f'<text x="{_WIDTH / 2:g}" y="{base}" text-anchor="middle">{(low + high) / 2:g}</text>'
        f'<text x="{_WIDTH - _LEFT}" y="{base}" text-anchor="end">{high:g}</text></svg>'
    )
