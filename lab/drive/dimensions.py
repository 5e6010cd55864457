"""The dimensions of the sessions at the corners: the build, the removed data, the client, and the place.

A corner has one value in each dimension.  Corners are drawn in rounds of one size.  In each round, all pairs of values
that can meet do meet, in as few corners as a greedy search finds; the other corners are random.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Iterator
from itertools import combinations

from lab.drive.debuggers import MODES, STRICT
from tests.rewriting.bolt import path as bolt_path

Corner = dict[str, str]
"""A value for each dimension."""
Pair = tuple[tuple[str, str], tuple[str, str]]

WHOLE, DEBUG_FRAME = "whole", "debug-frame"
ONE_CFI, SOME_CFI, NO_CFI, GONE = "one-cfi", "some-cfi", "no-cfi", "gone"
ONE_SFRAME, ONE_BOTH = "one-sframe", "one-both"
LACKING = (ONE_CFI, SOME_CFI, NO_CFI, GONE, ONE_BOTH)
"""Values with which functions have no CFI."""
CORES = {
    True: ("gcore", "kernel"),
    False: ("gcore", "kernel", "save-stack", "save-modified-memory", "save-full", "minidump"),
}
"""Kinds of core files, for GDB and for LLDB."""
LIVE, REMOTE, DISTANT = "live", "remote", "distant"
"""Places that are not core files: a process, local or at a debug server, which can be 20 ms away."""
COMPACT, NO_SFRAME = "3-compact", "none"
"""Versions: version 3, made smaller by `convert --compact`; and a program without SFrame."""
BOLT, OBJCOPY, STRIP, PATCHELF = "bolt", "objcopy", "strip", "patchelf"
"""Tools that rewrite a linked program: BOLT moves code, and knows nothing of SFrame; objcopy and strip (which removes
debug information) write the file anew, and patchelf moves segments and section headers."""
SHALLOW = "0"
"""The depth of a program whose main calls its functions itself; otherwise, the number of frames between."""
NOBODY, LISTENER, PROMPT = "nobody", "listener", "prompt"
"""What else is in the debugger: a script that listens to its events, or a prompt that shows the selected frame."""

_BUILDS = {
    "program": ("calls", "stubs", "jumps", "objects", "methods"),
    "level": ("O0", "O1", "O2"),
    "version": ("1", "2", "3", COMPACT, NO_SFRAME),
    "linker": ("ld", "lld", "mold"),
    "plt": ("lazy", "now", "ibt", "ibt-now", "no-plt"),
    "position": ("pie", "fixed", "static", "static-pie"),
    "tables": (WHOLE, DEBUG_FRAME, ONE_CFI, SOME_CFI, NO_CFI, GONE, ONE_SFRAME, ONE_BOTH),
    "symbols": ("all", "stripped", "headless"),
    "rewritten": ("no", BOLT, OBJCOPY, STRIP, PATCHELF),
    "depth": (SHALLOW, "10", "300", "3000", "20000"),
}
CLIENTS = {
    True: ("batch", "terminal", "script", "mi", "dap"),
    False: ("batch", "terminal", "script", "async-script", "two", "dap"),
}
"""Clients of a debugger: for GDB, and for LLDB."""
THROWING = ("objects",)
"""Programs that need their CFI to run, because exceptions find their handlers by it."""


@functools.cache
def dimensions(is_gdb: bool, has_adapter: bool) -> dict[str, tuple[str, ...]]:
    """Return the values of each dimension.

    :param has_adapter: whether there is a DAP adapter for the debugger.
    """
    clients = tuple(client for client in CLIENTS[is_gdb] if client != "dap" or has_adapter)
    places = (LIVE, *([REMOTE, DISTANT] if is_gdb else []), *CORES[is_gdb])
    others = (NOBODY, LISTENER, *([PROMPT] if is_gdb else []))
    return {**_BUILDS, "client": clients, "place": places, "others": others, "mode": (*MODES, STRICT)}


def possible(corner: Corner) -> bool:
    """Return whether values can meet; dimensions may be missing."""
    tables, symbols, position = (corner.get(name, "") for name in ("tables", "symbols", "position"))
    static = position in ("static", "static-pie")
    bolted = corner.get("rewritten") == BOLT
    impossible = (
        # Without a search table, exceptions do not work, and GCC always gives C++ with exceptions `.eh_frame`.
        corner.get("program") in THROWING and tables in (*LACKING, DEBUG_FRAME),
        # Its load address is known only from its symbols.
        position == "static-pie" and symbols in ("stripped", "headless"),
        # A static program has no PLT, except for functions that are chosen at run time.
        static and corner.get("plt", "lazy") != "lazy",
        # lld and mold have no such option: mold always does it, and lld takes it from the object files.
        corner.get("linker", "ld") != "ld" and corner.get("plt") == "ibt-now",
        # They write no PT_GNU_SFRAME, so nothing refers to the section.
        corner.get("linker", "ld") != "ld" and symbols == "headless",
        # The functions that still have unwind data are found by their addresses.
        position == "static-pie" and tables == GONE,
        # An adapter cannot fix the random bytes of a process, from which jmp_bufs are made.
        corner.get("client") == "dap" and corner.get("program") == "jumps",
        # An adapter needs a program that it starts itself.
        corner.get("client") == "dap" and corner.get("place", LIVE) != LIVE,
        corner.get("client") == "two" and corner.get("place", LIVE) != LIVE,
        # Functions are found by name.
        corner.get("client") == "dap" and symbols in ("stripped", "headless"),
        # There is nothing to remove.
        corner.get("version") == NO_SFRAME and (tables in (*LACKING, ONE_SFRAME) or symbols == "headless"),
        # BOLT reads `.eh_frame` and symbols, and not each linker's output; and it is not installed everywhere.
        bolted and (tables not in ("", WHOLE) or symbols == "headless" or static or bolt_path() is None),
        bolted and (corner.get("linker", "ld") != "ld" or corner.get("program") in THROWING),
        # A section that is made smaller describes the code before BOLT.
        bolted and corner.get("version") == COMPACT,
        # In a static program, there is nothing for patchelf to change.
        corner.get("rewritten") == PATCHELF and static,
        # It moves lld's `.sframe` of version 3, whose addresses are relative to their place: it then describes nothing.
        corner.get("rewritten") == PATCHELF
        and corner.get("linker") == "lld"
        and (tables in (*LACKING, ONE_SFRAME) or corner.get("version") == COMPACT),
        # These ask for all frames at each stop, which takes GDB and LLDB minutes.
        corner.get("depth") == "20000" and corner.get("client") in ("mi", "script", "async-script", "two"),
        # Only people have prompts, and an adapter executes no command before it starts the program.
        corner.get("others") == PROMPT and corner.get("client", "batch") not in ("batch", "terminal"),
        corner.get("others", NOBODY) != NOBODY and corner.get("client") in ("dap", "two"),
    )
    return not any(impossible)


_PLAIN: Corner = {
    "program": "calls",
    "level": "O1",
    "version": "3",
    "linker": "ld",
    "plt": "lazy",
    "position": "pie",
    "tables": "whole",
    "symbols": "all",
    "rewritten": "no",
    "depth": SHALLOW,
    "client": "batch",
    "place": "live",
    "others": NOBODY,
    "mode": "always",
}


def corner(**others: str) -> Corner:
    """Return the plain corner with some other values."""
    assert possible({**_PLAIN, **others})
    return {**_PLAIN, **others}


def pairs_of(corner: Corner) -> set[Pair]:
    """Return the pairs of values that meet in a corner."""
    return set(combinations(corner.items(), 2))


@functools.cache
def all_pairs(is_gdb: bool, has_adapter: bool) -> frozenset[Pair]:
    """Return all pairs of values that can meet."""
    space = dimensions(is_gdb, has_adapter)
    found = set()
    for first, second in combinations(space, 2):
        for left in space[first]:
            for right in space[second]:
                if _completed({first: left, second: right}, space, random.Random(0)) is not None:
                    found.add(((first, left), (second, right)))
    return frozenset(found)


def _completed(begun: Corner, space: dict[str, tuple[str, ...]], rng: random.Random) -> Corner | None:
    """Return a corner with the given values; ``None``: there is none."""
    if not possible(begun):
        return None
    missing = next((name for name in space if name not in begun), None)
    if missing is None:
        return {name: begun[name] for name in space}
    weights = {LIVE: 8.0, WHOLE: 2.0, SHALLOW: 4.0, NOBODY: 4.0}
    for value in sorted(space[missing], key=lambda value: -(rng.random() ** (1 / weights.get(value, 1.0)))):
        found = _completed({**begun, missing: value}, space, rng)
        if found is not None:
            return found
    return None


@functools.cache
def round_of_corners(number: int, is_gdb: bool, has_adapter: bool) -> tuple[Corner, ...]:
    """Return corners in which all pairs meet; another set for each number."""
    space, rng = dimensions(is_gdb, has_adapter), random.Random(f"round {number} {is_gdb}")
    left = set(all_pairs(is_gdb, has_adapter))
    chosen = []
    while left:
        seeds = rng.sample(sorted(left), min(len(left), _CANDIDATES))
        completed = (_completed(dict(pair), space, rng) for pair in seeds)
        best = max((corner for corner in completed if corner), key=lambda corner: len(pairs_of(corner) & left))
        chosen.append(best)
        left -= pairs_of(best)
    while len(chosen) < ROUND:
        drawn = _completed({}, space, rng)
        assert drawn is not None
        chosen.append(drawn)
    rng.shuffle(chosen)
    return tuple(chosen)


_CANDIDATES = 30
ROUND = 120
"""Number of corners in a round.  The search needs 83 to 99, so a seed gives its round without the earlier rounds."""


def corner_of(seed: int, is_gdb: bool, has_adapter: bool, wanted: Corner | None = None) -> Corner:
    """Return the corner of a session.

    :param wanted: values that it has whatever the seed; the others are then random, but for the mode.
    :raises ValueError: the wanted values cannot meet.
    """
    space = dimensions(is_gdb, has_adapter)
    if wanted and set(wanted) != {"mode"}:
        chosen = _completed(dict(wanted), space, random.Random(f"corner {seed}"))
        if chosen is None or any(value not in space.get(name, ()) for name, value in wanted.items()):
            raise ValueError(f"no such corner: {wanted}")
        return chosen
    number, place = divmod(seed, ROUND)
    return {**round_of_corners(number, is_gdb, has_adapter)[place], **(wanted or {})}


def coverage(corners: Iterable[Corner], wanted: frozenset[Pair]) -> Iterator[str]:
    """Yield a table: for each two dimensions, how many of the pairs that can meet have met."""
    met: set[Pair] = set()
    for corner in corners:
        met |= pairs_of(corner)
    names = list(dict.fromkeys(name for pair in sorted(wanted) for name, _ in pair))
    names = [name for name in (*_BUILDS, "client", "place", "others", "mode") if name in names]
    yield "| pairs met | " + " | ".join(names[1:]) + " |"
    yield "|---|" + "--:|" * (len(names) - 1)
    for row, first in enumerate(names[:-1]):
        cells = []
        for column, second in enumerate(names[1:], 1):
            own = {pair for pair in wanted if (pair[0][0], pair[1][0]) == (first, second)}
            cells.append(f"{len(own & met)}/{len(own)}" if column > row else "")
        yield f"| {first} | " + " | ".join(cells) + " |"
