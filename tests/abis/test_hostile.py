"""Corrupt or foreign SFrame data, unreadable stacks, dying processes: GDB continues, and prints one clear line."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path
from typing import Callable

import pytest
from elftools.elf.elffile import ELFFile

from tests.abis.debuggers import DEBUGGERS, debugger, described
from tests.abis.rewrite import overwrite
from tests.expectations import STOPS
from tests.gdb.driver import call, call_and_output
from tests.gdb.programs import built
from tests.pairing import paired
from tests.samples.catalogue import ABIS

WALK = next(stop for stop in STOPS if stop.sample == "free_walk")
REGISTERS = {
    "amd64": ("$rsp", "$rbp"),
    "aarch64": ("$sp", "$x29"),
    "aarch64_be": ("$sp", "$x29"),
    "s390x": ("$r15", "$r11"),
}
"""The sources by which a frame can be found."""
MARK = {"amd64": "<", "aarch64": "<", "aarch64_be": ">", "s390x": ">"}
OTHER_ABI = {"amd64": 2, "aarch64": 3, "aarch64_be": 4, "s390x": 1}
"""The number of an ABI of the same byte order."""
_ABI, _NUM_FDES = 4, 8

_HEADER, _FDE = 28, 16
"""Sizes in bytes in version 3."""

CASES = [(abi, name) for abi in ABIS for name in DEBUGGERS]


def rows_start(abi: str, data: bytes) -> int:
    """Return the offset of the FRE sub-section."""
    (count,) = struct.unpack_from(MARK[abi] + "I", data, _NUM_FDES)
    return _HEADER + _FDE * int(count)


Change = Callable[[str, bytes, bytes], bytes]
"""``(ABI, section, section of another ABI)``: returns the changed section."""

CHANGES: dict[str, tuple[Change, str]] = {
    "magic": (lambda _abi, data, _other: b"\x12\x34" + data[2:], "found bytes 1234"),
    "byte order": (lambda _abi, data, _other: data[1::-1] + data[2:], r""),
    "version": (lambda _abi, data, _other: data[:2] + b"\x09" + data[3:], "version 9"),
    "another ABI": (
        lambda abi, data, _other: data[:_ABI] + bytes([OTHER_ABI[abi]]) + data[_ABI + 1 :],
        r" in a process of |ABI",
    ),
    "another machine's section": (lambda _abi, data, other: other[: len(data)], r" in a process of |beyond"),
    "number of FDEs": (
        lambda abi, data, _other: data[:_NUM_FDES] + struct.pack(MARK[abi] + "I", 1 << 31) + data[_NUM_FDES + 4 :],
        r"",
    ),
    "rows": (lambda abi, data, _other: data[: rows_start(abi, data)].ljust(len(data), b"\xff"), r""),
}


def contents(path: Path) -> bytes:
    """Return the contents of a file's `.sframe`."""
    with path.open("rb") as stream:
        return bytes(ELFFile(stream).get_section_by_name(".sframe").data())


@pytest.mark.parametrize(("abi", "name"), CASES)
def test_damaged_and_foreign_sections(abi: str, name: str, tmp_path: Path) -> None:
    original = built(WALK.sample, abi, 3)
    other = contents(built(WALK.sample, "s390x" if abi == "amd64" else "amd64", 3))
    programs = []
    for number, (change, _) in enumerate(CHANGES.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        copy = Path(shutil.copy(original, folder))
        data = contents(copy)
        overwrite(copy, change(abi, data, other)[: len(data)])
        programs.append(described(WALK, copy, abi))
    collect = "tests.abis.inside.unusable.collect"
    answers, printed = call_and_output(debugger(name, abi), collect, programs=programs)
    for (what, (_, said)), told, answer in paired(CHANGES.items(), programs, answers):
        # In batch mode, the line is printed when GDB ends.
        start = f"sframe: {told['executable']}: SFrame data not used: "
        # QEMU may be writing its own last line when GDB writes this one.
        lines = re.findall(rf"sframe: {re.escape(str(told['executable']))}: .*", printed)
        assert len(lines) == 1, (what, printed)
        assert lines[0].startswith(start), what
        assert re.search(said, lines[0]), (what, lines)
        assert answer["always"] == [answer["native"]] * 2, what
        assert "sframe: " not in answer["further"], what
        assert "not usable: " in answer["explain"], (what, answer["explain"])
        assert WALK.sample in answer["status"]


@pytest.mark.parametrize("variant", ["O2", "fp"])
@pytest.mark.parametrize(("abi", "name"), CASES)
def test_unreadable_stack(abi: str, name: str, variant: str) -> None:
    program = described(WALK, built(WALK.sample, abi, 3, variant), abi)
    sp, fp = REGISTERS[abi]
    commands = ["bt", f"set $sp_kept = {sp}", f"set $fp_kept = {fp}", f"set {sp} = 0x10", f"set {fp} = 0x20"]
    commands += ["bt", "sframe bt", "sframe compare", "sframe explain", "echo still here\\n"]
    commands += [f"set {sp} = $sp_kept", f"set {fp} = $fp_kept", "bt"]
    answers = call(debugger(name, abi), "console.session", commands=commands, program=program)
    said = [(answer["output"], answer["error"]) for answer in answers]
    complete, lost, ours, compared, explained, still, again = said[0], *said[5:10], said[12]
    assert complete == again
    assert len(complete[0].splitlines()) >= len(WALK.functions)
    for shown, error in (lost, ours, compared, explained):
        assert shown or error
        assert len(error.splitlines()) <= 1
    assert len(lost[0].splitlines()) < len(complete[0].splitlines())
    assert "end: " in ours[0], ours
    assert re.search(r"[Cc]annot (read|access)", ours[0]), ours
    assert still[0] == "still here\n"


@pytest.mark.parametrize(("abi", "name"), CASES)
def test_process_dies_during_a_backtrace(abi: str, name: str, tmp_path: Path) -> None:
    path = built(WALK.sample, abi, 3)
    cases = [(level, command) for level in (0, 2) for command in ("bt", "sframe bt", "sframe compare")]
    cases.append((1, "finish"))
    described(WALK, path, abi)
    answers = call(
        debugger(name, abi),
        "tests.abis.inside.dying.collect",
        emulator=ABIS[abi].emulator,
        executable=str(path),
        place=WALK.place,
        cases=cases,
        folder=str(tmp_path),
    )
    assert len(answers) == len(cases)
    for case, (first, still, *later) in paired(cases, answers):
        assert first["output"] or first["error"], case
        assert still["output"] == "still here\n", case
        for answer in (first, *later):
            assert answer["output"] or answer["error"], case
            assert len(answer["error"].splitlines()) <= 1, (case, answer)


def test_limit_on_the_size_of_values() -> None:
    """Memory is read as values, whose size the user can limit."""
    program = described(WALK, built(WALK.sample, "aarch64", 3), "aarch64")
    commands = ["bt", "set max-value-size 16", "stepi", "stepi", "bt", "set sframe mode off", "bt"]
    answers = call(debugger("pypi", "aarch64"), "console.session", commands=commands, program=program)
    assert not any(answer["error"] for answer in answers)
    by_sframe, native = answers[4]["output"], answers[6]["output"]
    assert len(by_sframe.splitlines()) == len(native.splitlines()) == len(answers[0]["output"].splitlines()) - 1
