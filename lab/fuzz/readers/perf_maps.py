"""The files in `/tmp` that name run-time code, which anybody can write."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from lab.fuzz.fields import Field
from lab.fuzz.seeds import Seed
from sframe_unwind.process.perf_map import PerfMap

_START = 0x7F12_3456_7000
_PLAIN = "".join(f"{_START + 0x40 * number:x} 40 function {number} a, b\n" for number in range(20))
_ODD = (
    f"{_START:x} 0 empty\n0x{_START:X} 10 prefixed\n{_START:x} 20\n -10 20 negative\n{_START:x} -8 shorter\n"
    "ffffffffffffffff 1 last\n0 ffffffffffffffff all\n1_0 1_0 underscores\n\n   \nno number at all\n"
    "400000 10 \x1b[31mred\x1b[0m\n400010 10 \u2028 lines \x85 within \x0c\n400020 10 carriage\r\n"
)


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return files as compilers write them, and files with unusual contents."""
    return (
        Seed("plain", _PLAIN.encode(), 0),
        Seed("odd", _ODD.encode(), 0),
        Seed("both", (_ODD + _PLAIN).encode(), 0),
        Seed("UTF-16", _PLAIN.encode("utf-16"), 0),
        Seed("long", b"%x 10 " % _START + b"name" * 50_000 + b"\n" + b"f" * 50_000 + b" 1 address\n", 0),
    )


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return each byte of the first kilobyte as a field."""
    return tuple(Field(at, 1, "little") for at in range(min(len(seed.data), 1024)))


@functools.cache
def _root() -> Path:
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="sframe-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "tmp").mkdir()
    return folder


def exercise(seed: Seed, seen: Counter[str]) -> str:
    """Look up names in the functions and around them; some inputs are not regular files."""
    path = _root() / "tmp" / f"perf-{os.getpid()}.map"
    kind = seed.address // 5 % 50
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.symlink_to("/dev/zero")
    elif kind == 2:
        path.symlink_to(path)
    else:
        path.write_bytes(seed.data)
    try:
        names = PerfMap(os.getpid(), str(_root()))
        found = [names.name(pc) for pc in (0, 1, (1 << 64) - 1, *range(0x400000, 0x400040, 8))]
        found += [names.name(pc) for pc in range(_START - 0x40, _START + 0x600, 0x10)]
    finally:
        path.unlink()
    assert kind > 2 or not any(found)
    assert not any("\n" in name for name in found)
    seen["perf maps: names"] += sum(map(bool, found))
    return "names" if any(found) else "none"
