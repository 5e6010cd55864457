"""Proves that a converted table gives the same rules as its sources."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable

from sframe_unwind.address import Range, gaps
from sframe_unwind.arch import Arch
from sframe_unwind.cfi.rules import Said, differences
from sframe_unwind.errors import TranslationError
from sframe_unwind.translation.changes import at_changes
from sframe_unwind.translation.description import Description, Loss
from sframe_unwind.unwind_rule import UnwindRule


def prove(
    sources: Iterable[Description],
    results: Iterable[Description],
    losses: Iterable[Loss],
    arch: Arch,
    padding: Collection[Range] = (),
) -> int:
    """Compare the rules of a result with those of its sources, at each address at which either changes.

    The result must describe every byte that a source describes, unless the source is named as lost, and no other byte,
    unless it is named as padding.

    :param sources: decoded from the input; no two have the same extent.
    :param results: decoded from the bytes that were made from the sources.
    :param padding: ranges between two sources that a result may describe.
    :returns: the number of addresses that were compared.
    :raises TranslationError: they differ.
    """
    lost = {(loss.start, loss.end) for loss in losses}
    kept = (source for source in sources if (source.start, source.end) not in lost)
    ordered = sorted(kept, key=lambda source: source.start)
    starts = [one.start for one in ordered]
    left = {one.start: one.end - one.start for one in ordered}
    compared = 0
    for result in results:
        found = ordered[max(bisect_right(starts, result.start) - 1, 0) : bisect_right(starts, result.end - 1)]
        found = [source for source in found if source.end > result.start]
        for low, high in gaps((result.start, result.end), [(source.start, source.end) for source in found]):
            if (low, high) not in padding:
                raise TranslationError(f"the result describes {low:#x} to {high:#x}, no source does")
        for source in found:
            low, high = max(source.start, result.start), min(source.end, result.end)
            compared += _compare(source, result, (low, high), arch)
            left[source.start] -= high - low
    missing = next((start for start, size in left.items() if size), None)
    if missing is not None:
        raise TranslationError(f"the result does not describe the function at {missing:#x} exactly once")
    return compared


def _compare(source: Description, result: Description, part: Range, arch: Arch) -> int:
    """Compare source and result in a part of the code; return the number of addresses that were compared."""
    if result.signal != source.signal or result.pauth_key is not source.pauth_key:
        raise TranslationError(f"the function at {source.start:#x} has another key, or is not marked as its source is")
    compared = 0
    for pc, one, other in at_changes(source.rules, result.rules, source.start, result.start, *part):
        compared += 1
        if one is not other and not _same(one, other, arch):
            raise TranslationError(f"at {pc:#x} the source says {one}, the result {other}")
    return compared


def _same(one: Said | None, other: Said | None, arch: Arch) -> bool:
    return isinstance(one, UnwindRule) and isinstance(other, UnwindRule) and not differences(one, other, arch)
