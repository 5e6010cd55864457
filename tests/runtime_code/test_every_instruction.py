"""At every instruction of generated functions, the stack is complete and the caller's registers are correct."""

from __future__ import annotations

import pytest

from tests.gdb.driver import Debugger, call, find
from tests.missing import absent
from tests.runtime_code.programs import COPIES, EVERYWHERE, IN_GDB, LIBUNWIND, OWN, generated, program

OF_OTHERS = (*COPIES, "alias_prologue", "alias_outlined")
"""The functions that have another kind of unwind info than directives."""
CASES = [
    *((LIBUNWIND, "amd64", name) for name in IN_GDB),
    *((OWN, abi, name) for abi in ("aarch64", "s390x") for name in EVERYWHERE),
]


@pytest.mark.parametrize(("registry", "abi", "function"), CASES, ids=[f"{abi}-{name}" for _, abi, name in CASES])
def test_caller(registry: str, abi: str, function: str) -> None:
    debugger = find("pypi", abi) or absent("no GDB from PyPI")
    _check(debugger, registry, abi, function)


def _check(debugger: Debugger, registry: str, abi: str, function: str) -> None:
    described = program(abi, generated(abi, registry), function)
    result = call(debugger, "tests.runtime_code.inside.stepping.steps", program=described, abi=abi)
    assert len(result["calls"]) == 2
    for made in result["calls"]:
        expected, stops = made["expected"], made["stops"]
        instructions = [stop for stop in stops if stop["called"] is None]
        assert len(instructions) >= 8
        assert any(stop["called"] == "sample_stop" for stop in stops)
        wrong = 0
        for stop in stops:
            shown = stop["always"]
            where = f"{function} at {stop['pc']:#x} in {stop['called']}"
            level = 1 if stop["called"] is None else 2
            assert shown["level"] == level, where
            assert shown["sp"] == expected["sp"], where
            unknown = {name for name, value in shown["saved"].items() if value is None}
            # SFrame and the rows of CFI that are read restore the frame pointer alone.
            assert not unknown or function in OF_OTHERS, where
            told = {name: value for name, value in shown["saved"].items() if name not in unknown}
            assert told == {name: expected["saved"][name] for name in told}, where
            assert shown["outside"][:3] == ["sample_call", "call", "main"], where
            wrong += stop["off"]["level"] != level or stop["off"]["sp"] != expected["sp"]
        # GDB's own unwinder does not know the code: each word at SP is a return address to it. Where no word on the
        # way is 0, it comes to the caller all the same, after frames that there are not.
        assert wrong > len(stops) / 4


@pytest.mark.parametrize("name", ["pypi", "system"])
def test_registers_in_memory_outside_a_frame_by_sframe(name: str) -> None:
    """GDB locates the registers that the directives save in memory, although the inner frame is by SFrame."""
    debugger = find(name) or absent(f"no GDB ({name})")
    described = program("amd64", generated("amd64", LIBUNWIND, sframe=True), "nested")
    result = call(debugger, "tests.runtime_code.inside.stepping.steps", program=described, abi="amd64")
    within = [
        (stop["always"], made["expected"])
        for made in result["calls"]
        for stop in made["stops"]
        if stop["called"] == "sample_stop"
    ]
    assert len(within) == 4
    for number, (shown, expected) in enumerate(within):
        # At the first of the two calls in the function r12 is not saved yet.
        located = ("rbp", "rbx", "r12") if number % 2 else ("rbp", "rbx")
        for register in located:
            assert shown["saved"][register] == expected["saved"][register], register
        assert shown["saved"]["r13"] == expected["saved"]["r13"]


@pytest.mark.parametrize("function", ["spills", "frame_pointer", "two_exits", "alias"])
def test_caller_in_gdb_13(function: str) -> None:
    debugger = find("system") or absent("no GDB of the system's")
    _check(debugger, LIBUNWIND, "amd64", function)
