"""Finds the places at which damaged sections crash readers, and the smallest input for each.

    python -m lab.readers.crashes [--count N] [--first N] [--reader NAME] [--keep FOLDER]

The sections are the cases of the corpus and N mutations (:mod:`mutated`).  A kind of crash is a signal, the function of
the reader that crashes, and the one that was called from outside; the smallest section of each is cut further while
the reader crashes in the same way.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lab.readers.corpus import cases
from lab.readers.mutated import campaign, damaged
from lab.readers.running import Reader, Request, ask
from sframe_unwind import elf
from sframe_unwind.address import RangeMap
from tests.hanging import HANG

_SOURCE = Path(__file__).parent / "adapters" / "crash_place.c"
_SECONDS = HANG
_AT_ONCE = 250
"""How many sections one process of a reader is asked for."""
_HEAPS = ("", "glibc.malloc.tcache_count=0")
"""Two settings of the heap: whether a reader crashes can depend on what was in its memory before."""
_OBJECTS = {"libsframe": "libsframe", "glibc": "glibc"}
"""The beginning of the names of the files with a reader's code, by the first word of the reader's name."""


class Kind(NamedTuple):
    """How a reader crashes."""

    signal: str
    function: int
    """The start of the function that crashes, or calls the code that does; 0: the stack has none of the reader."""
    entry: str
    """The outermost function of SFrame on the stack."""

    def __str__(self) -> str:
        return f"{self.signal} in {self.entry}, function at {self.function:#x}"


class Watched:
    """A reader that reports the place of a crash.

    :param folder: the folder for the reader's files.
    """

    def __init__(self, reader: Reader, folder: Path) -> None:
        library, self._places = folder / "crash_place.so", folder / "places"
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, _SOURCE], check=True, timeout=_SECONDS)
        name = _OBJECTS[reader.name.partition(" ")[0]]
        with elf.opened(reader.command[-1]) as binary:
            self._functions = RangeMap((start, end, start) for start, end in binary.cfi.ranges())
            self._names = {start: binary.function_name(start) for start, _ in binary.cfi.ranges()}
        told = [f"LD_PRELOAD={library}", f"CRASH_PLACES={self._places}", f"CRASH_OBJECT={name}"]
        command = reader.of_all_rows.command
        commands = (("env", f"GLIBC_TUNABLES={heap}", *told, *command) for heap in _HEAPS)
        self._readers = [reader._replace(command=command) for command in commands]

    def crashes(self, requests: Sequence[Request]) -> list[Kind | None]:
        """Return how the reader crashes at each of some sections; ``None``: it does not."""
        return self._crashes(self._readers[0], requests)

    def certain(self, requests: Sequence[Request]) -> list[Kind | None]:
        """Return the same; ``None`` also for a crash that depends on memory that was not written."""
        found = [self._crashes(reader, requests) for reader in self._readers]
        return [kinds[0] if len(set(kinds)) == 1 else None for kinds in zip(*found)]

    def _crashes(self, reader: Reader, requests: Sequence[Request]) -> list[Kind | None]:
        found: list[Kind | None] = []
        for first in range(0, len(requests), _AT_ONCE):
            found += self._kinds(reader, requests[first : first + _AT_ONCE])
        return found

    def _kinds(self, reader: Reader, requests: Sequence[Request]) -> list[Kind | None]:
        self._places.write_text("", encoding="ascii")
        crashed = ["crashed" in answer for answer in ask(reader, requests)]
        told = [line.split() for line in self._places.read_text(encoding="ascii").splitlines()[1:]]
        if len(told) != sum(crashed):
            raise OSError(f"{reader.name}: {len(told)} places of {sum(crashed)} crashes")
        kinds = iter([self._kind(*line) for line in told])
        return [next(kinds) if one else None for one in crashed]

    def _kind(self, number: str, *frames: str) -> Kind:
        functions = [self._functions.get(int(place, 16)) or 0 for place in frames]
        names = [name for name in map(self._names.get, functions) if name and "sframe" in name]
        return Kind(signal.Signals(int(number)).name, functions[0] if functions else 0, names[-1] if names else "")

    def smallest(self, request: Request, kind: Kind) -> Request:
        """Return the smallest part of a section with which the reader still crashes in the same way."""
        size = len(request.section) // 2
        while size:
            starts = range(0, len(request.section), size)
            alone = [_without(request, [start], size) for start in starts]
            useless = [start for start, found in zip(starts, self.certain(alone)) if found == kind]
            together = [_without(request, useless[:count], size) for count in range(1, len(useless) + 1)]
            same = [one for one, found in zip(together, self.certain(together)) if found == kind]
            request = same[-1] if same else request
            size = min(size if same else size // 2, len(request.section) // 2)
        fewer = [request._replace(pcs=[pc]) for pc in request.pcs]
        return next((one for one, found in zip(fewer, self.certain(fewer)) if found == kind), request)


def _without(request: Request, starts: Sequence[int], size: int) -> Request:
    """Return a section without the parts of one size that begin at some places."""
    data = bytearray(request.section)
    for start in reversed(starts):
        del data[start : start + size]
    return request._replace(section=bytes(data))


def find(reader: Reader, numbers: Sequence[int], folder: Path) -> dict[Kind, tuple[str, Request]]:
    """Return the smallest section of each kind, and the section before it was cut."""
    watched = Watched(reader, folder)
    kinds: dict[Kind, tuple[str, Request]] = {}

    def add(named: Sequence[tuple[str, Request]]) -> None:
        for one, kind in zip(named, watched.crashes([request for _, request in named])):
            if kind is not None:
                kinds[kind] = min(kinds.get(kind, one), one, key=_size)

    known = [case for case in cases() if reader.is_for(case)]
    add([(case.name, Request(case.section, case.address, [pc for pc, _ in case.expected])) for case in known])
    for first in range(0, len(numbers), _AT_ONCE):
        sections = damaged(reader, numbers[first : first + _AT_ONCE])
        add([(f"mutation {one.number} of {one.name}", one.request) for one in sections])
    return {
        kind: (name, watched.smallest(request, kind))
        for kind, (name, request) in kinds.items()
        if watched.certain([request])[0] == kind
    }


def _size(named: tuple[str, Request]) -> int:
    return len(named[1].section)


def main() -> int:
    """Find the kinds of crashes, and print each with its smallest section."""
    readers, numbers, keep = campaign("lab.readers.crashes")
    for reader in readers:
        if reader.name.partition(" ")[0] not in _OBJECTS:
            continue
        with tempfile.TemporaryDirectory() as folder:
            kinds = find(reader, numbers, Path(folder))
        print(f"{reader.name}: {len(kinds)} kinds", flush=True)
        for kind, (name, request) in kinds.items():
            pcs = " ".join(map(hex, request.pcs)) if len(request.pcs) == 1 else f"{len(request.pcs)} addresses"
            print(f"  {kind}: {len(request.section)} bytes ({name}) at {request.address:#x}, {pcs}")
            if len(request.section) <= 128:
                print(f"    {request.section.hex()}", flush=True)
            if keep:
                keep.mkdir(parents=True, exist_ok=True)
                file = f"{reader.name}-{kind.signal}-{kind.function:x}-{kind.entry}".replace(" ", "-")
                Path(keep, file).write_bytes(request.section)
    return 0


if __name__ == "__main__":
    sys.exit(main())
