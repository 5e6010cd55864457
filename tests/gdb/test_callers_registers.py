"""The caller's registers in frames that only SFrame describes, compared with the CFI of the same program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sframe_unwind.arch import BY_NAME
from tests.gdb.compiling import with_and_without_cfi
from tests.gdb.driver import Debugger, batch, call
from tests.missing import package_needed
from tests.pairing import paired
from tests.samples.catalogue import ABIS

KNOWN = {"amd64": 1.0, "aarch64": 1.0, "s390x": 0.95}
"""The share of the registers of the CFI that must be known; the others must be missing."""


def described(executable: Path, place: str, mode: str, abi: str = "amd64") -> dict[str, Any]:
    """Return a program in the form for `tests.gdb.inside.callers`."""
    program = {"executable": str(executable), "arguments": [], "emulator": ABIS[abi].emulator, "signals": []}
    return {**program, "place": place, "mode": mode}


@pytest.mark.parametrize("abi", KNOWN)
def test_at_every_instruction(newest: Debugger, abi: str, tmp_path: Path) -> None:
    package_needed("pyvex")
    arch = BY_NAME[abi]
    names = [arch.register_name(number) for number in (*arch.preserved, arch.fp)]
    programs = [
        described(path, "*callee", mode, abi)
        for path, mode in zip(with_and_without_cfi(tmp_path, abi), ("off", "always"))
    ]
    expected, found = call(newest, "callers.step", programs=programs, registers=names, functions=["callee", "leaf"])
    assert len(expected) == len(found) > 40
    known = total = 0
    moved: set[int] = set()  # emulators since QEMU 10 put the stack elsewhere in each run
    for before, now in paired(expected, found):
        assert len(before) >= len(now) >= 2
        for own, other in paired(before, now):
            if own["pc"] != other["pc"]:
                break  # beyond `main`
            values = [(mine, value) for mine, value in zip(own["registers"], other["registers"]) if mine is not None]
            moved |= {int(value, 16) - int(mine, 16) for mine, value in values if value is not None} - {0}
            assert len(moved) <= bool(ABIS[abi].emulator), f"pc {own['pc']:#x}: {values}"
            known += sum(value is not None for _, value in values)
            total += len(values)
    assert known >= KNOWN[abi] * total > 0


def test_all_registers_at_the_first_instruction(debugger: Debugger, tmp_path: Path) -> None:
    _, without = with_and_without_cfi(tmp_path)
    output = batch(debugger, "break *leaf", "run", "info registers", "up", "info registers", executable=without)
    values = re.findall(r"^(\w+) +(0x[0-9a-f]+|<not saved>)", output, re.MULTILINE)
    half = len(values) // 2
    assert half > 20
    changed = {name for (name, value), (_, other) in zip(values[:half], values[half:]) if value != other}
    assert [name for name, _ in values[:half]] == [name for name, _ in values[half:]]
    assert changed == {"rsp", "rip"}
    assert "<not saved>" not in output


@pytest.mark.parametrize("strict", ["off", "on"])
def test_registers_of_the_thread(debugger: Debugger, strict: str, tmp_path: Path) -> None:
    """No function changes them, so all frames have those of the innermost one."""
    _, without = with_and_without_cfi(tmp_path)
    shown = "info registers fs_base gs_base"
    commands = (f"set sframe strict {strict}", "break leaf", "run", shown, "up", shown, "up", shown)
    output = batch(debugger, *commands, executable=without)
    lines = re.findall(r"^([fg]s_base) +(\S+)", output, re.MULTILINE)
    assert len(lines) == 6
    assert lines[0][1] != "0x0"
    assert lines[2:4] == lines[4:] == lines[:2]


def test_registers_of_the_thread_on_s390x(newest: Debugger, tmp_path: Path) -> None:
    programs = [
        described(path, "leaf", mode, "s390x")
        for path, mode in zip(with_and_without_cfi(tmp_path, "s390x"), ("off", "always"))
    ]
    expected, found = call(newest, "callers.step", programs=programs, registers=["acr0", "acr1"], functions=["leaf"])
    for before, now in paired(expected, found):
        inside = [frame["registers"] for frame in before[:3]]
        assert inside == [["0x0", inside[0][1]]] * 3
        assert inside[0][1] != "0x0"
        assert [frame["registers"] for frame in now] == inside


@pytest.mark.parametrize("place", ["*leaf", "*callee"])
def test_return_from_the_first_instruction(debugger: Debugger, place: str, tmp_path: Path) -> None:
    commands = (f"break {place}", "run", "return 42", "delete", "continue")
    outputs = [batch(debugger, *commands, executable=path) for path in with_and_without_cfi(tmp_path)]
    results = [re.findall(r"^i=.*$", output, re.MULTILINE) for output in outputs]
    assert len(results[0]) == 3
    assert results[1] == results[0]


def test_explain_names_the_registers(newest: Debugger, tmp_path: Path) -> None:
    package_needed("pyvex")
    _, without = with_and_without_cfi(tmp_path)
    output = batch(newest, "break leaf", "run", "up", "sframe explain", executable=without)
    lines = output.partition("regs:  the caller's others, by the machine code\n")[2].splitlines()
    saved = [re.fullmatch(r"       (\w+) in memory at CFA - \d+", line) for line in lines]
    assert [match[1] for match in saved if match is not None][:2] == ["rbx", "r12"]
    assert any("unchanged" in line for line in lines)


def test_strict_knows_nothing_but_sframe(newest: Debugger, tmp_path: Path) -> None:
    _, without = with_and_without_cfi(tmp_path)
    shown = "python print(gdb.selected_frame().read_register('rbx').is_optimized_out)"
    commands = ("break leaf", "run", "up", shown, "set sframe strict on", "up", shown)
    output = batch(newest, *commands, executable=without)
    assert output.splitlines()[-1] == "True"


def test_a_register_variable_of_the_caller_is_watched(newest: Debugger, tmp_path: Path) -> None:
    """Edge case 34: GDB follows it by instruction, and stops following it if its register is unknown."""
    package_needed("pyvex")
    commands = ("set can-use-hw-watchpoints 0", "break *leaf", "run", "delete", "frame 1", "watch s2")
    expected, found = (
        batch(newest, *commands, "continue", "continue", executable=path).partition("Watchpoint")[2]
        for path in with_and_without_cfi(tmp_path)
    )
    assert "Old value" in expected
    assert "callee" in expected
    assert found == expected
