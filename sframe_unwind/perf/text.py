"""The text of ``sframe-unwind perf``: a sentence, then tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sframe_unwind.perf.judging import Verdict
from sframe_unwind.perf.methods import TITLES
from sframe_unwind.perf.summary import Summary
from sframe_unwind.report.columns import aligned
from sframe_unwind.report.terminal import shortened

_MOST_BLOCKERS = 20
_MOST_THREADS = 20
_FUNCTION = 2
"""The column of names in the table of blockers."""
_SHORTEST_NAME = 24


def to_text(summary: Summary, columns: int | None = None) -> Iterator[str]:
    """Yield the lines.

    :param columns: width that a line may have; names of functions that are too long are cut in the middle, to not less
        than 24 characters.  ``None``: no line is cut.
    """
    yield sentence(summary)
    rows = [["method", *(verdict.value for verdict in Verdict), "complete %"]]
    for method in summary.methods:
        counts = [summary.count(method, verdict) for verdict in Verdict]
        rows.append([TITLES[method], *map(str, counts), _percent(counts[0], summary.user_samples)])
    yield ""
    yield from _table(rows, range(1, 6))
    blockers = summary.blockers()
    if blockers:
        rows = [["samples", "method", "function", "module", "reason"]]
        for one in blockers[:_MOST_BLOCKERS]:
            rows.append(
                [str(one.samples), one.method, one.name.function or "?", one.name.module or "?", one.explanation]
            )
        if columns is not None:
            others = sum(max(map(len, cells)) + 2 for at, cells in enumerate(zip(*rows)) if at != _FUNCTION)
            for row in rows:
                row[_FUNCTION] = shortened(row[_FUNCTION], max(columns - others, _SHORTEST_NAME))
        yield ""
        yield from _table(rows, (0,))
        if len(blockers) > _MOST_BLOCKERS:
            yield f"and {len(blockers) - _MOST_BLOCKERS} more (--json has all)"
    threads = summary.threads()
    if len(threads) > 1:
        rows = [["samples", "pid", "tid", "thread", *(f"{method} %" for method in summary.methods)]]
        for thread in threads[:_MOST_THREADS]:
            shares = [_percent(count, thread.samples) for count in thread.complete]
            rows.append([str(thread.samples), str(thread.pid), str(thread.tid), thread.name, *shares])
        yield ""
        yield from _table(rows, (0, 1, 2, *range(4, len(rows[0]))))
        if len(threads) > _MOST_THREADS:
            yield f"and {len(threads) - _MOST_THREADS} more threads"


def _table(rows: list[list[str]], numbers: Iterable[int]) -> list[str]:
    """Return the lines of a table.

    :param numbers: the columns that are aligned to the right.
    """
    for column in numbers:
        width = max(len(row[column]) for row in rows)
        for row in rows:
            row[column] = row[column].rjust(width)
    return aligned(rows)


def sentence(summary: Summary) -> str:
    """Return the result in one sentence: about SFrame if it was asked for, else about the first method."""
    main = "sframe" if "sframe" in summary.methods else summary.methods[0]
    total = summary.user_samples
    others = ", ".join(
        f"{TITLES[method]} {_percent(summary.count(method, Verdict.COMPLETE), total)}%"
        for method in ("dwarf", "fp")
        if method in summary.methods and method != main
    )
    share = _percent(summary.count(main, Verdict.COMPLETE), total)
    first = f"{TITLES[main]} gives complete stacks for {share}% of {total:,} samples"
    first += f" ({others})" if others else ""
    blockers = summary.blockers(main)
    missing = sum(one.samples for one in blockers)
    if not missing:
        return first
    modules: Counter[str] = Counter()
    for one in blockers:
        modules[one.name.module] += one.samples
    (module, samples), *_ = modules.most_common(1)
    functions = {one.name.function for one in blockers if one.name.module == module}
    name = module.rpartition("/")[2] or "code outside all files"
    what = f"{len(functions)} function" + ("s" if len(functions) > 1 else "")
    return f"{first}; {_percent(samples, missing)}% of what is missing is {name}: {what}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0.0"
