"""Tells how more stacks of a recording can become complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sframe_unwind.errors import PACKAGES, counted
from sframe_unwind.perf.code_file import NOT_FOUND
from sframe_unwind.perf.judging import CALLED_OUTERMOST, OTHER_CALLER, Verdict
from sframe_unwind.perf.summary import Summary
from sframe_unwind.unwind.modules import NO_SECTION

_LARGEST_COPY = 65528
"""Maximum size of a stack's copy in bytes: the kernel takes less than 64 KiB, in multiples of 8."""
_MOST_FILES = 3


def advice(summary: Summary, convert: bool) -> Iterator[str]:
    """Yield sentences of advice; none: no advice is known.

    :param convert: SFrame was made from the CFI of files without SFrame.
    """
    yield from _missing_files(summary)
    yield from _larger_copies(summary)
    if not convert:
        yield from _sframe(summary)
    yield from _witness(summary)


def _missing_files(summary: Summary) -> Iterator[str]:
    """Advise where to look for files, by the method that misses most of them."""
    by_method = (_files(summary, method, NOT_FOUND) for method in summary.methods)
    files = max(by_method, key=lambda files: sum(files.values()))
    if files:
        them, stacks = _them(files), counted(sum(files.values()), "stack ends", "stacks end", ",")
        yield (
            f"{stacks} at a file that is not here: {_shown(files)}; name the"
            f" folder that has {them} with --sysroot, or one that has {them} by build ID with --debug-dir"
        )


def _files(summary: Summary, method: str, reason: str) -> Counter[str]:
    """Return, for each file, the number of stacks by a method that end in it for a reason."""
    files: Counter[str] = Counter()
    for one in summary.blockers(method):
        if one.reason == reason and one.name.module.startswith("/"):
            files[one.name.module] += one.samples
    return files


def _shown(files: Counter[str]) -> str:
    shown = ", ".join(f"{path} ({samples:,})" for path, samples in files.most_common(_MOST_FILES))
    return f"{shown} and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else shown


def _larger_copies(summary: Summary) -> Iterator[str]:
    copied = summary.largest_cut
    if not copied:
        return
    cut = max(summary.count(method, Verdict.CUT) for method in summary.methods)
    what = f"{counted(cut, 'stack is', 'stacks are', ',')} cut at the end of the copy, {copied:,} bytes from SP"
    larger = min(1 << copied.bit_length(), _LARGEST_COPY)
    if larger > copied:
        yield f"{what}: record more of it with --call-graph dwarf,{larger}"
    else:
        yield f"{what}, which is all that the kernel copies"


def _sframe(summary: Summary) -> Iterator[str]:
    for method in ("sframe", "sframe-linux"):
        if method not in summary.methods:
            continue
        files = _files(summary, method, NO_SECTION)
        if files:
            stacks = counted(sum(files.values()), "stack ends", "stacks end", ",")
            yield (
                f"{stacks} by SFrame at a file without it: {_shown(files)}; build"
                f" {_them(files)} with -Wa,--gsframe (--convert shows the effect)"
            )
        return


def _witness(summary: Summary) -> Iterator[str]:
    wrong = [one for one in summary.blockers() if one.reason in (OTHER_CALLER, CALLED_OUTERMOST)]
    count = sum(one.samples for one in wrong if one.method.startswith("sframe") and one.right is None)
    if count:
        what = counted(count, "stack differs from that", "stacks differ from those", ",")
        yield f"{what} of the CFI; the table says which is right after pip install {PACKAGES['code']}"


def _them(files: Counter[str]) -> str:
    return "it" if len(files) == 1 else "them"
