"""Checks the frames that GDB shows for a stopped sample."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.expectations import Stop, matches
from tests.pairing import paired
from tests.samples import readelf
from tests.samples.readelf import SFrame

_RANGE = re.compile(r"Range 0x([0-9a-f]+)-0x([0-9a-f]+): (.*?)(?=\n +Range |\Z)", re.DOTALL)
_BY_CFA = re.compile(r"fbreg|frame base|call_frame_cfa|frame at CFA")


def check_functions(stop: Stop, shown: dict[str, Any]) -> None:
    """Check that the selected thread and the others have the stacks for which the sample was made."""
    names = [frame["name"] for frame in shown["frames"]]
    assert matches(stop.functions, names), names
    parts = re.split(r"^Thread \d+ .*:$", shown["threads"], flags=re.MULTILINE)[1:]
    stacks = [names_in(part) for part in parts]
    for pattern in stop.threads:
        assert any(matches(pattern, stack) for stack in stacks), (pattern, stacks)


def names_in(backtrace: str) -> list[str]:
    """Return the functions of a backtrace in GDB's output."""
    return re.findall(
        r"^#\d+ +(?:0x[0-9a-f]+ (?:\[PAC\] )?in )?(<signal handler called>|[^ ]+)", backtrace, flags=re.MULTILINE
    )


def check_frames(always: dict[str, Any], off: dict[str, Any]) -> int:
    """Check that both modes show the same frames, with the arguments that debug information locates by the CFA.

    Return the number of these arguments.
    """
    shapes = [[(frame["name"], frame["pc"], frame["kind"]) for frame in shown["frames"]] for shown in (always, off)]
    assert shapes[0] == shapes[1]
    located = 0
    for level, (ours, native) in enumerate(zip(always["frames"], off["frames"])):
        address = native["pc"] - (level > 0)
        for argument, expected in paired(ours["arguments"], native["arguments"]):
            by_cfa = located_by_cfa(expected["location"], address)
            located += by_cfa
            if argument["value"] != expected["value"]:
                what = f"frame {level}, {expected}: {argument['value']}"
                assert not by_cfa, what
                # A callee-saved register, of this frame or (entry values) of its caller.
                assert "optimized out" in argument["value"], what
    return located


def located_by_cfa(location: str, address: int) -> bool:
    """Return whether a variable is at an offset from the CFA at an address, according to `info address`."""
    ranges = _RANGE.findall(location)
    if not ranges:
        return bool(_BY_CFA.search(location))
    return any(int(start, 16) <= address < int(end, 16) and _BY_CFA.search(what) for start, end, what in ranges)


def up_to(backtrace: str, function: str) -> str:
    """Return a backtrace without the frames beyond a function, and without the reason why there are no more."""
    found = re.search(rf"^#\d+ .*\b{function} .*\n", backtrace, flags=re.MULTILINE)
    assert found, backtrace
    return backtrace[: found.end()]


def without_arguments(backtrace: str) -> str:
    """Return a backtrace with only levels, pcs, functions and places."""
    return re.sub(r" \(.*\)(?= at | from |$)", "", backtrace, flags=re.MULTILINE)


def check_unwinders(thread: dict[str, Any], code: dict[str, int], sframe: SFrame, text_address: int) -> int:
    """Check that SFrame unwound every frame of the executable that it describes; return their number.

    :param thread: thread in the output of `sframe compare --json`.
    :param code: address of the executable's `.text` in memory.
    :param text_address: its address in the file.
    """
    bias = code["start"] - text_address
    found = 0
    for level, frame in enumerate(thread["frames"]):
        pc = frame["sframe_pc"]
        if not code["start"] <= pc < code["end"]:
            continue
        # The output does not tell whether a frame's registers are live; a row for either address must have been used.
        addresses = {pc - bias} if level == 0 else {pc - 1 - bias, pc - bias}
        if all(covers(sframe, address) for address in addresses):
            assert frame["unwinder"] == "sframe", frame
            found += 1
    return found


def covers(sframe: SFrame, address: int) -> bool:
    """Return whether readelf lists a row for an address."""
    return any(
        function.start <= address < function.start + function.size
        and (function.mask or bool(function.rows and function.rows[0].start <= address))
        for function in sframe.functions
    )


def text_address(tools: Path, executable: Path) -> int:
    """Return the address of `.text` in a file."""
    return readelf.read_sections(tools, executable)[".text"].address
