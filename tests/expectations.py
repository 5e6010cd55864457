"""The expected stops and stacks of the samples, for every debugger.

Nothing here depends on a debugger or an ABI; the tests of each debugger use these stops and stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ANY = "..."
"""In a list of functions: any number of frames of the C library and the kernel, also none."""
AGREEMENT = r"\d+ frames? agrees?(?:, \d+ of them by SFrame)?(?:; \d+ outermost frames? ha(?:s|ve) no CFA)?"
"""Matches the verdict of ``sframe compare`` if no frame differs and all frames with a caller are comparable."""


@dataclass(frozen=True)
class Stop:
    """A sample stopped at a place."""

    sample: str
    functions: tuple[str, ...]
    """The selected thread's stack from the innermost function to the program's first one, including inlined and
    tail-called functions; empty: there are no symbols."""
    arguments: tuple[str, ...] = ()
    place: str = "sample_stop"
    hits: int = 1
    """The number of times that the place is reached."""
    signals: tuple[str, ...] = ()
    """Signals for the program itself: the debugger must pass them on."""
    threads: tuple[tuple[str, ...], ...] = ()
    """The stacks of the other threads."""
    physical: tuple[str, ...] = ()
    """The functions that have their own frame, if not all have one."""

    @property
    def name(self) -> str:
        """Return the name in test reports."""
        place = () if self.place == "sample_stop" else (self.place,)
        return "-".join((self.sample, *self.arguments, *place))

    @property
    def frames(self) -> tuple[str, ...]:
        """Return the functions that an unwinder finds."""
        return self.physical or self.functions


def shows_frames_beyond_start(stop: Stop, version: int) -> bool:
    """Return whether SFrame wrongly gives `_start` a caller.

    The assemblers that write versions 1 and 2 describe its return address as saved, although its CFI marks it as
    undefined; the word there is the number of the program's arguments.
    """
    return version < 3 and bool(stop.functions) and stop.functions[-1] == "_start"


def matches(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether the names of a stack's frames, from the innermost outward, match a pattern.

    Frames beyond the program's first function do not matter.
    """
    if not pattern:
        return True
    if pattern[0] == ANY:
        return any(matches(pattern[1:], names[skipped:]) for skipped in range(len(names) + 1))
    return bool(names) and names[0] == pattern[0] and matches(pattern[1:], names[1:])


def _descents(depth: int) -> tuple[str, ...]:
    """Return the frames of recursion.c, from the innermost outward."""
    called = []
    for level in range(depth + 1):
        called.append("descend")
        if level < depth and level % 4 == 3:
            called.append("descend_wide")
    return tuple(reversed(called))


_WALK = ("sample_stop", "innermost", "large_frame", "medium_frame", "with_alloca", "apply", *["descend"] * 7)
_PLT = ("sample_stop", "called_back", "inside", "shared_apply", "through_library", "main")
_SIGNALLED = ("sample_stop", "handler", ANY)
_FAULT = (*_SIGNALLED, "fault", "provoke", "main")
_STEPPER = ("sample_stop", "innermost", "apply", "all", "main")

SFRAME_ONLY = Stop("sframe_only", ("sample_stop", "innermost", "with_alloca", *["descend"] * 7, "main"))
SFRAME_ONLY_STRIPPED = Stop("sframe_only_stripped", ())
SFRAME_ONLY_FREE = Stop("free_sframe_only", (*_WALK, "free_main", "_start"))

WITHOUT_CFI = (SFRAME_ONLY, SFRAME_ONLY_STRIPPED, SFRAME_ONLY_FREE)
"""Programs that only SFrame describes: a debugger's own unwinder cannot find their stacks."""

STRIPPED_DEPTH = len(SFRAME_ONLY.functions)
"""The number of frames of the stripped program, up to and including main."""

STOPS = (
    Stop("leaf", ("sample_stop", "inner", "outer", "main")),
    Stop("leaf", ("leaf_without_stack", "inner", "outer", "main"), place="leaf_without_stack"),
    Stop("leaf", ("leaf_with_stack", "inner", "outer", "main"), place="leaf_with_stack"),
    Stop("recursion", ("sample_stop", *_descents(12), "main")),
    Stop("dynamic", ("sample_stop", "with_vla", "with_alloca", "main")),
    Stop("offsets", ("sample_stop", "small_frame", "medium_frame", "large_frame", "main")),
    Stop("sizes", ("sample_stop", "short_function", "long_function", "huge_function", "main")),
    Stop("noreturn", ("sample_stop", "leave", "last_call", "main")),
    Stop("callback", ("sample_stop", "compare", ANY, "sort", "main")),
    Stop("signals", (*_SIGNALLED, "provoke", "main"), ("raise",), signals=("SIGUSR1",)),
    Stop("signals", (*_SIGNALLED, "provoke", "main"), ("kill",), signals=("SIGUSR1",)),
    Stop("signals", _FAULT, ("fault",), signals=("SIGSEGV",)),
    Stop("signals", _FAULT, ("altstack",), signals=("SIGSEGV",)),
    Stop("signals", _FAULT, ("above",), signals=("SIGSEGV",)),
    Stop("signals", (*_SIGNALLED, "fault_at_entry", "provoke", "main"), ("entry",), signals=("SIGILL",)),
    Stop(
        "threads",
        ("sample_stop", "stop_among", "main"),
        threads=tuple((ANY, *["wait_at"] * (depth + 1), "worker") for depth in (1, 2, 3)),
    ),
    Stop("plt", _PLT),
    Stop("plt_now", _PLT),
    Stop("plt_ibt", _PLT),
    Stop("dlopen", ("sample_stop", "called_back", "plugin_run", "use_plugin", "main"), hits=3),
    Stop(
        "tail_inline",
        ("sample_stop", "inlined_inner", "inlined_outer", "real_frame", "tail_second", "tail_first", "main"),
        physical=("sample_stop", "real_frame", "main"),
    ),
    Stop("realign", ("sample_stop", "aligned_local", "aligned_entry", "main")),
    Stop("stepper", _STEPPER),
    Stop("stepper_lazy", _STEPPER),
    Stop("free_walk", (*_WALK, "free_main", "_start")),
    Stop("free_leaf", ("sample_stop", "around", "free_main", "_start")),
    Stop("free_leaf", ("busy_leaf", "around", "free_main", "_start"), place="sample_in_leaf"),
)
"""Programs that DWARF also describes: SFrame's stack equals the debugger's own."""
