"""Measures the command ``perf`` on large recordings, with ``perf script`` beside it."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.compiling import compiled
from bench.memory import peak
from bench.processes import COMMAND, processor_time
from bench.report import BenchError, Row, Target, Unavailable, medians, ratios
from bench.timing import in_turns

PART = "perf"
ROUNDS = 3
SAMPLES = 20_000
BY_SFRAME = Target(4)
BY_ALL = Target(16)
"""Limits of the time divided by that of ``perf script``."""
MEMORY = Target(300)
"""Target in MB."""
LARGE = 1 << 30
"""Size of the recording that memory is measured with, in bytes."""
_TIMEOUT = 600
_SOURCE = "../tests/perf/sorting.c"
_FLAGS = ("-fno-optimize-sibling-calls", "-DVALUES=200", "-DCALLS=60000", "-DDEPTH(i)=(10 + (i) % 4)")
"""Some 20 frames in each sample."""
_BY_SFRAME = """
import sys
from sframe_unwind.cli import main
main(["perf", sys.argv[1], "--convert", "--method", "sframe"])
"""
_DATA, _DATA_SIZE, _FEATURES = 40, 48, 72
"""Offsets in ``struct perf_file_header``: ``data.offset``, ``data.size``, and the bit map of the features."""
_SAMPLE = 9
_TIME = 24
"""Offset of the time in the record of a sample: after its header, the pc, and process and thread."""


def rows() -> Iterator[Row]:
    """Measure whole processes in processor time, on recordings in which the samples of a short one are repeated."""
    what = f"{SAMPLES:,} samples of some 20 frames"
    with tempfile.TemporaryDirectory() as folder:
        path, large = Path(folder) / "perf.data", Path(folder) / "large.data"
        try:
            recorded = _recorded(Path(folder), 4096)
        except Unavailable as error:
            yield Row(part=PART, what=what, values=(), unit="x", target=BY_SFRAME, detail=str(error))
            return
        _repeat(recorded, path, samples=SAMPLES)
        _repeat(_recorded(Path(folder), 32768), large, size=LARGE)
        times = in_turns(
            ROUNDS,
            {
                "SFrame": lambda: _unwind(path, "--convert", "--method", "sframe"),
                "all methods": lambda: _unwind(path, "--convert"),
                "perf script": lambda: processor_time(["perf", "script", "-F", "ip", "-i", str(path)]),
            },
        )
        for name, shown, target in (
            ("SFrame", "SFrame, and DWARF to compare with", BY_SFRAME),
            ("all methods", "all methods", BY_ALL),
        ):
            yield Row(
                part=PART,
                what=f"{what}: {shown} / perf script",
                values=ratios(times[name], times["perf script"]),
                unit="x",
                target=target,
                detail=medians("s", **times),
            )
        path.unlink()
        yield Row(PART, "memory for a recording of 1 GB", [peak(_BY_SFRAME, large, _TIMEOUT) / 1024], "MB", MEMORY)


def _recorded(folder: Path, dump: int) -> bytes:
    """Return a recording of one event.

    :param dump: bytes of stack in each sample.
    """
    if shutil.which("perf") is None:
        raise Unavailable("perf is not installed")
    program, path = compiled(_SOURCE, folder / "profiled", *_FLAGS), folder / "recorded"
    usual = ["-q", "-e", "cpu-clock:u", "-F", "1999", "--call-graph", f"dwarf,{dump}"]
    done = subprocess.run(
        ["perf", "record", *usual, "-o", str(path), "--", str(program)],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    if done.returncode not in (0, 1) or not path.exists():
        raise Unavailable(f"perf records nothing here: {done.stderr[-200:]}")
    return path.read_bytes()


def _repeat(data: bytes, path: Path, samples: int = 0, size: int = 0) -> None:
    """Write a recording with the samples of another one, repeated up to a number or a size, without its features.

    :param data: a recording of one event.
    """
    start, length = struct.unpack_from("<QQ", data, _DATA)
    others: list[bytes] = []
    repeated: list[bytes] = []
    at = start
    while at < start + length:
        kind, _, record_size = struct.unpack_from("<IHH", data, at)
        (repeated if kind == _SAMPLE else others).append(data[at : at + record_size])
        at += record_size
    if not repeated:
        raise BenchError("a recording without samples")
    times = [struct.unpack_from("<Q", sample, _TIME)[0] for sample in repeated]
    written, count = sum(map(len, others)), 0
    with path.open("wb") as stream:
        stream.write(data[:start])
        stream.writelines(others)
        while count < samples or written < size:
            sample = repeated[count % len(repeated)]
            round_start = times[-1] - times[0] + 1
            time = struct.pack("<Q", times[count % len(repeated)] + count // len(repeated) * round_start)
            stream.write(sample[:_TIME] + time + sample[_TIME + 8 :])
            written, count = written + len(sample), count + 1
        stream.seek(_DATA_SIZE)
        stream.write(struct.pack("<Q", written))
        stream.seek(_FEATURES)
        stream.write(bytes(32))


def _unwind(path: Path, *options: str) -> float:
    return processor_time((*COMMAND, "perf", str(path), *options))
