"""LLDB's stack below code that is registered at run time."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.lldb.debuggers import PROVIDING, find
from tests.lldb.driver import IMPORT, batch, call
from tests.runtime_code.programs import EVERYWHERE, FUNCTIONS, LIBUNWIND, ON_AMD64, OWN, PARTS, generated, jit, program

CALLER = ["sample_call", "call", "main"]
COMMANDS = ["sframe backtrace", "sframe status"]
S390X = "LLDB 22.1 and 23.1 crash on their own, without the plugin, when s390x code that has no module is on the stack"
"""Why that ABI is not among these; the core and GDB are tested with it."""
CASES = [(LIBUNWIND, "amd64"), (OWN, "aarch64")]
NEWEST = PROVIDING[-1]


def _stops(lldb: str, described: dict[str, Any], elftools: bool = True) -> list[dict[str, Any]]:
    started = {**described, "sysroot": ""}
    shown: list[dict[str, Any]] = call(
        lldb, "run_time_code", "stops", program=started, commands=COMMANDS, elftools=elftools
    )
    return shown


@pytest.mark.parametrize("lldb", PROVIDING)
@pytest.mark.parametrize(("registry", "abi"), CASES)
def test_directives_need_no_pyelftools(registry: str, abi: str, lldb: str) -> None:
    """A Python without pyelftools is enough as long as the program has SFrame."""
    _check(lldb, abi, registry, True, (*FUNCTIONS, "alias"), elftools=False)


@pytest.mark.parametrize("sframe", [True, False], ids=["sframe", "dwarf"])
@pytest.mark.parametrize(("registry", "abi"), CASES)
def test_every_kind_of_unwind_info(registry: str, abi: str, sframe: bool) -> None:
    _check(NEWEST, abi, registry, sframe, ON_AMD64 if abi == "amd64" else EVERYWHERE)


def _check(lldb: str, abi: str, registry: str, sframe: bool, functions: tuple[str, ...], elftools: bool = True) -> None:
    """Check that the stack is complete and the code named; LLDB alone does not get beyond the code.

    The C code of the program has SFrame and CFI, or CFI alone.
    """
    shown = _stops(find(lldb), program(abi, generated(abi, registry, sframe), *functions), elftools)
    named: list[str] = []
    unaided = 0
    for stop in shown:
        pcs, names = zip(*stop["always"])
        assert names[0] == "sample_stop"
        assert list(names[2:5]) == CALLER, names
        unaided += [name for _, name in stop["off"]][2:5] == CALLER
        found = re.search(rf"^#1 +{pcs[1]:#018x}  (\S+) \(run-time code\) +sframe$", stop["commands"][0], re.MULTILINE)
        assert found, stop["commands"][0]
        named.append(found[1])
    assert unaided < len(shown) / 2  # where rbp or x29 is a frame pointer, LLDB guesses right
    assert set(named) == {PARTS.get(name, name) for name in functions}


def test_cancelled_code_is_not_used_any_more() -> None:
    """Two functions are registered, two cancelled, and two others registered where the first one was."""
    shown = _stops(find(NEWEST), program("amd64", generated("amd64", LIBUNWIND), "--cancel"))
    complete = [[name for _, name in stop["always"]][2:5] == CALLER for stop in shown]
    assert complete == [True, True, False, False, True, True]
    listed = [re.findall(r"^(\w+) .* libunwind proc-info at ", stop["commands"][1], re.MULTILINE) for stop in shown]
    assert "spills" in listed[0]
    assert not listed[2]
    assert listed[4] == ["frame_pointer"]


@pytest.mark.parametrize("abi", [abi for _, abi in CASES])
def test_jit_images_come_and_go(abi: str) -> None:
    executable, first, second = jit(abi, sframe=True)
    shown = _stops(find(NEWEST), program(abi, executable, str(first), str(second)))
    assert len(shown) == 3
    for stop in shown[:2]:
        assert [name for _, name in stop["always"]][2:4] == ["sample_call", "main"]
        assert re.search(r"^#1 .* jitted \(.*\) +sframe$", stop["commands"][0], re.MULTILINE)
        assert re.search(r"^JIT image at .* SFrame version 3, 1 function$", stop["commands"][1], re.MULTILINE)
    assert "JIT image" not in shown[2]["commands"][1]
    assert [name for _, name in shown[2]["always"]][2:4] != ["sample_call", "main"]


@pytest.mark.parametrize("lldb", PROVIDING)
def test_the_list_of_a_process_that_has_ended_is_not_read(lldb: str) -> None:
    """The command `script` asks for frames then, too."""
    executable, first, second = jit("amd64", sframe=True)
    lines = [IMPORT, f'target create "{executable}"', "breakpoint set -n sample_call"]
    lines += [f'process launch -- "{first}" "{second}"', "breakpoint delete -f", "continue", "script lldb.process"]
    said = batch(find(lldb), *(part for line in lines for part in ("-o", line)))
    assert "stop reason = breakpoint" in said
    assert "exited with status = 0" in said
    assert "the list of JIT images" not in said
