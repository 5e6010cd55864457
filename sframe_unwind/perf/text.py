"""The text of ``sframe-unwind perf``: a sentence, then tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sframe_unwind.errors import counted
from sframe_unwind.perf.judging import Verdict
from sframe_unwind.perf.methods import TITLES
from sframe_unwind.perf.summary import Summary
from sframe_unwind.report.columns import aligned
from sframe_unwind.report.terminal import shortened

_MOST_BLOCKERS = 24
_LEAST_BLOCKERS = 4
"""Minimum number of lines for each method."""
_MOST_THREADS = 20
_SHORTEST_NAME = 24


def to_text(summary: Summary, columns: int | None = None) -> Iterator[str]:
    """Yield the lines.

    :param columns: maximum width of a line; names of functions that are too long are cut in the middle, to not less
        than 24 characters.  ``None``: no line is cut.
    """
    yield sentence(summary)
    yield ""
    yield from _methods(summary)
    if summary.blockers():
        yield ""
        yield from _blockers(summary, columns)
    if len(summary.threads()) > 1:
        yield ""
        yield from _threads(summary)


def _methods(summary: Summary) -> Iterator[str]:
    rows = [["method", *(verdict.value for verdict in Verdict), "complete %", "frames %"]]
    for method in summary.methods:
        counts = [summary.count(method, verdict) for verdict in Verdict]
        complete = _percent(counts[0], summary.user_samples)
        frames = _percent(summary.frames(method), summary.frames_by_cfi)
        rows.append([TITLES[method], *map(str, counts), complete, frames])
    yield from _table(rows, range(1, 7))


def _blockers(summary: Summary, columns: int | None) -> Iterator[str]:
    """Yield a table with the same number of lines for each method; names, which can be long, are last."""
    shown = max(_MOST_BLOCKERS // len(summary.methods), _LEAST_BLOCKERS)
    rows = [["samples", "method", "reason", "module", "function"]]
    for method in summary.methods:
        for one in summary.blockers(method)[:shown]:
            rows.append([str(one.samples), method, one.explanation, one.name.module or "?", one.name.function or "?"])
    if columns is not None:
        others = sum(max(map(len, cells)) + 2 for cells in list(zip(*rows))[:-1])
        for row in rows:
            row[-1] = shortened(row[-1], max(columns - others, _SHORTEST_NAME))
    left = len(summary.blockers()) - len(rows) + 1
    yield from _table(rows, (0,))
    if left:
        yield f"and {left} more (--json has all)"


def _threads(summary: Summary) -> Iterator[str]:
    threads = summary.threads()
    rows = [["samples", "pid", "tid", "thread", *(f"{method} %" for method in summary.methods)]]
    for thread in threads[:_MOST_THREADS]:
        shares = [_percent(count, thread.samples) for count in thread.complete]
        rows.append([str(thread.samples), str(thread.pid), str(thread.tid), thread.name, *shares])
    yield from _table(rows, (0, 1, 2, *range(4, len(rows[0]))))
    if len(threads) > _MOST_THREADS:
        left = len(threads) - _MOST_THREADS
        yield f"and {counted(left, 'more thread')}"


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
    """Return the result in one sentence: about SFrame if that is one of the methods, else about the first method."""
    main = "sframe" if "sframe" in summary.methods else summary.methods[0]
    total = summary.user_samples
    others = ", ".join(
        f"{TITLES[method]} {_percent(summary.count(method, Verdict.COMPLETE), total)}%"
        for method in ("dwarf", "fp")
        if method in summary.methods and method != main
    )
    share = _percent(summary.count(main, Verdict.COMPLETE), total)
    first = f"{TITLES[main]} gives complete stacks for {share}% of {counted(total, 'sample', spec=',')}"
    first += f" ({others})" if others else ""
    blockers = summary.blockers(main)
    missing = sum(one.samples for one in blockers)
    if not missing:
        return first
    modules: Counter[str] = Counter()
    for one in blockers:
        modules[one.name.module] += one.samples
    (module, samples), *_ = modules.most_common(1)
    reasons: Counter[str] = Counter()
    for one in blockers:
        if one.name.module == module:
            reasons[one.reason] += one.samples
    functions = {one.name.function for one in blockers if one.name.module == module} - {""}
    count = f"{counted(len(functions), 'function')}: " if functions else ""
    what = f"{_shown(module)} ({count}{reasons.most_common(1)[0][0]})"
    return f"{first}; {_percent(samples, missing)}% of the failed and wrong ones end in {what}"


def _shown(module: str) -> str:
    """Return a short name of a module."""
    if module.startswith("//anon"):
        return "generated code"
    return module.rpartition("/")[2] or "code outside all files"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0.0"
