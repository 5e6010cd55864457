"""Remote targets, with and without access to the target's files, and the number of packets that they cost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.abis.debuggers import debugger, described, sysroot
from tests.expectations import STOPS, Stop, matches
from tests.gdb.driver import call
from tests.gdb.programs import built
from tests.samples.build import toolchain
from tests.samples.catalogue import ABIS
from tests.samples.readelf import Symbol, read_symbols

EXTRA_PACKETS = 3
"""Maximum number of packets for each frame in addition to those of GDB's own unwinder.

GDB's unwinder caches memory of the stack; the plugin cannot know when a cache is outdated.
"""
MODULE_PACKETS = 3
"""Maximum number of packets for the vDSO: its entry in the list of libraries, its name and its headers.

QEMU has one from version 8.1 on.
"""
SAMPLES = ("recursion", "plt", "dlopen", "free_walk")
CHOSEN = {stop.sample: stop for stop in STOPS if stop.sample in SAMPLES}
KINDS = ("remote", "extended-remote")
CASES = [(abi, name) for abi in ABIS for name in SAMPLES if ABIS[abi].has_libc or name == "free_walk"]
BIG_ENDIAN = ("aarch64_be", "s390x")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("abi", "sample"), CASES)
def test_with_files(abi: str, sample: str, kind: str) -> None:
    stop = CHOSEN[sample]
    path = built(sample, abi, 3, "O2", pie=False)
    settings = [f"set solib-search-path {path.parent}", *([f"set sysroot {sysroot(abi)}"] if sysroot(abi) else [])]
    stops = session(stop, abi, path, kind, settings, files=True)
    for shown in stops:
        assert shown["files"]
        assert matches(stop.frames, [frame["name"] for frame in shown["chain"]])
        assert shown["compare"]["agrees"]
        check_packets(shown)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("abi", "sample"), CASES)
def test_by_memory_alone(abi: str, sample: str, kind: str) -> None:
    stop = CHOSEN[sample]
    path = built(sample, abi, 3, "O2", pie=False)
    # Without a file, GDB takes any target for a little-endian one.
    stops = session(stop, abi, path, kind, ["set endian big"] if abi in BIG_ENDIAN else [], files=False)
    symbols = read_symbols(toolchain(abi, 3), path)
    for shown in stops:
        assert not shown["files"]
        frames = [frame for frame in shown["compare"]["frames"] if frame["sframe_pc"] is not None]
        expected = [name for name in stop.frames if name in symbols]
        # Frames of libraries have no names here.
        names = [function_at(symbols, frame["sframe_pc"] - (level > 0)) for level, frame in enumerate(frames)]
        assert [name for name in names if name][: len(expected)] == expected
        assert all(frame["unwinder"] == "sframe" for frame in frames[: len(stop.frames)]), shown
        libraries = {"plt": ["libshared.so"], "dlopen": ["libplugin_one.so", "libplugin_two.so"]}.get(sample, [])
        with_sframe = re.findall(r"^(\S+) +0x", shown["status"], flags=re.MULTILINE)
        assert "executable" in with_sframe
        assert not libraries or set(libraries) & set(with_sframe), shown["status"]
        check_packets(shown)


def session(stop: Stop, abi: str, path: Path, kind: str, settings: list[str], files: bool) -> list[dict[str, Any]]:
    """Return GDB's output at each of the program's stops."""
    described(stop, path, abi)
    place = read_symbols(toolchain(abi, 3), path)[stop.place].address
    stops: list[dict[str, Any]] = call(
        debugger("pypi", abi),
        "tests.abis.inside.remote.session",
        kind=kind,
        emulator=ABIS[abi].emulator,
        executable=str(path),
        places=[place] * stop.hits,
        settings=settings,
        files=files,
    )
    assert len(stops) == stop.hits
    return stops


def check_packets(shown: dict[str, Any]) -> None:
    """Check that a stop's frames cost few packets, and none when they are shown again."""
    frames = sum(frame["sframe_pc"] is not None for frame in shown["compare"]["frames"])
    assert shown["off"]
    assert shown["always"] <= shown["off"] + EXTRA_PACKETS * frames + MODULE_PACKETS * shown["has_vdso"]
    # GDB reads the strings of arguments each time.
    assert shown["always again"] <= shown["off again"]


def function_at(symbols: dict[str, Symbol], address: int) -> str:
    """Return the function of the executable that contains an address; empty: there is none."""
    found = (
        name
        for name, symbol in symbols.items()
        if symbol.size and symbol.address <= address < symbol.address + symbol.size
    )
    return next(found, "")
