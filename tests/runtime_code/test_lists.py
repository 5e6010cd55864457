"""Code that is registered, removed and replaced: which unwind info is used, and the output of the commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gdb.driver import CHECKOUT, Debugger, batch, call, find
from tests.gdb.stacks import names_in
from tests.hanging import HANG
from tests.missing import absent
from tests.runtime_code.programs import LIBUNWIND, OWN, generated, jit, program

ABIS = ("amd64", "aarch64", "s390x")
COMMANDS = ["bt", "bt -no-filters", "sframe status", "sframe backtrace", "set sframe mode off", "bt"]
CALLER = ["sample_call", "call", "main"]


def _debugger(abi: str, name: str = "pypi") -> Debugger:
    found = find(name, abi)
    return found or absent(f"no GDB ({name}) for {abi}")


def _stops(debugger: Debugger, described: dict[str, object], *more: str) -> list[list[str]]:
    commands = [*COMMANDS, "set sframe mode always", *more]
    shown: list[list[str]] = call(
        debugger, "tests.runtime_code.inside.sessions.stops", program=described, commands=commands
    )
    return shown


@pytest.mark.parametrize(
    ("registry", "abi", "name"),
    [(LIBUNWIND, "amd64", "pypi"), (LIBUNWIND, "amd64", "system"), *((OWN, abi, "pypi") for abi in ABIS)],
)
def test_cancelled_code_is_not_used_any_more(registry: str, abi: str, name: str) -> None:
    """Two functions are registered, two cancelled, and two others registered where the first one was."""
    described = program(abi, generated(abi, registry), "--cancel")
    shown = _stops(_debugger(abi, name), described, "sframe explain $pc")
    assert len(shown) == 6
    for bt, plain, status, own, *_, off, _, _ in (shown[0], shown[1], shown[4], shown[5]):
        function = "spills" if "spills" in status else "frame_pointer"
        assert names_in(bt)[:5] == ["sample_stop", function, *CALLER]
        assert names_in(plain)[:5] == ["sample_stop", "??", *CALLER]
        assert re.search(rf"^#1 .* {function} \(run-time code\) +sframe$", own, re.MULTILINE)
        assert re.search(rf"^{function} +0x[0-9a-f]+-0x[0-9a-f]+ +libunwind proc-info at 0x", status, re.MULTILINE)
        assert names_in(off)[1] == "??"
    assert "spills" not in shown[4][2]
    for bt, _, status, own, *_ in shown[2:4]:
        assert names_in(bt)[1] == "??"
        assert "run-time code" not in status
        assert not re.search(r"^#1 .* sframe$", own, re.MULTILINE)


@pytest.mark.parametrize("name", ["pypi", "system"])
def test_mode_set_in_a_script(name: str) -> None:
    """Between the command and the backtrace there is neither a stop nor a prompt."""
    commands = ("set sframe mode off", "break sample_stop", "run spills", "set sframe mode always", "bt")
    output = batch(_debugger("amd64", name), *commands, executable=generated("amd64", LIBUNWIND))
    assert names_in(output)[-5:] == ["sample_stop", "spills", *CALLER]


def test_explain_names_the_code() -> None:
    executable = generated("amd64", LIBUNWIND)
    output = batch(_debugger("amd64"), "break sample_stop", "run nested", "up", "sframe explain", executable=executable)
    for line in (
        r"0x[0-9a-f]+ nested",
        r"code:  nested, 0x[0-9a-f]+ to 0x[0-9a-f]+",
        r"       libunwind proc-info at 0x[0-9a-f]+",
        r"rule:  CFA = rsp \+ 16",
        r"       rbx in memory at CFA - 16",
        r"       other callee-saved registers unchanged",
    ):
        assert re.search(rf"^{line}$", output, re.MULTILINE), output


def test_fallback_uses_what_is_registered() -> None:
    """GDB has no CFI for the code, and the fallback still unwinds it."""
    executable = generated("amd64", LIBUNWIND)
    commands = ("set sframe mode fallback", "break sample_stop", "run spills", "bt")
    output = batch(_debugger("amd64"), *commands, executable=executable)
    assert names_in(output)[:5] == ["sample_stop", "spills", *CALLER]


@pytest.mark.parametrize("abi", ABIS)
def test_jit_images_come_and_go(abi: str) -> None:
    executable, first, second = jit(abi)
    shown = _stops(_debugger(abi), program(abi, executable, str(first), str(second)))
    assert len(shown) == 3
    places = set()
    for bt, _, status, own, *_ in shown[:2]:
        assert names_in(bt)[:4] == ["sample_stop", "jitted", "sample_call", "main"]
        assert re.search(r"^#1 .* jitted \(jitted.c:9\) +sframe$", own, re.MULTILINE)
        found = re.search(r"^JIT image at 0x\S+ +0x(\S+)-0x(\S+) +SFrame version 3, 1 function$", status, re.MULTILINE)
        assert found, status
        places.add(found[1])
    # Another function, with a larger frame, in the same place.
    assert len(places) == 1
    bt, _, status, *_ = shown[2]
    assert names_in(bt)[1] == "??"
    assert "JIT image" not in status


def test_damage_in_a_session() -> None:
    """Another program writes to the list: one line is printed, and the rest still works."""
    executable = generated("amd64", OWN)
    commands = (
        "break sample_stop",
        "run spills",
        "set var infos[0]->next = infos[9]",
        "set var infos[0]->u.pi.regions->op[1].tag = 77",
        "set var _U_dyn_info_list.generation += 2",
        "bt",
        "set var infos[0]->u.pi.regions->op[1].tag = 4",
        "set var infos[0]->next = 0",
        "set var _U_dyn_info_list.generation += 2",
        "bt",
        "sframe status",
    )
    output = batch(_debugger("amd64"), *commands, executable=executable)
    lines = [line for line in output.splitlines() if line.startswith("sframe: ")]
    assert len(lines) == 2, output
    assert lines[0].startswith("sframe: libunwind's list is circular or too long: the entry at ")
    names = names_in(output)
    assert "sframe: run-time code: unwind info of spills not used: directive at 0x" in lines[1]
    assert names[:2] == ["sample_stop", "spills"]
    assert names[-5:] == ["sample_stop", "spills", *CALLER]


def test_filter_is_there_only_with_code_to_name() -> None:
    filters = "info frame-filter"
    executable, first, second = jit("amd64")
    without = batch(_debugger("amd64"), "break sample_stop", f"run {first} {second}", filters, executable=executable)
    commands = ("break sample_stop", "run --cancel", filters, "echo cancelled", "continue 2", filters)
    output = batch(_debugger("amd64"), *commands, executable=generated("amd64", LIBUNWIND))
    assert "No frame filters." in without
    before, after = output.split("cancelled", 1)
    assert "sframe" in before.split("frame-filters:")[1]
    assert "No frame filters." in after


@pytest.mark.parametrize("name", ["pypi", "system"])
def test_core_file(name: str, tmp_path: Path) -> None:
    core = tmp_path / "core"
    debugger, executable = _debugger("amd64", name), generated("amd64", LIBUNWIND)
    batch(debugger, "break sample_stop", "run nested", f"generate-core-file {core}", executable=executable)
    # GDB 13 looks symbols up for our commands, or at a prompt, and here there is none.
    output = batch(debugger, f"core-file {core}", "sframe status", "bt", executable=executable)
    assert names_in(output)[-5:] == ["sample_stop", "nested", *CALLER]
    assert re.search(r"^nested +0x.* libunwind proc-info at ", output, re.MULTILINE)
    command = [sys.executable, "-m", "sframe_unwind", "backtrace", "--core", str(core), "--exe", str(executable)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=HANG, check=True)
    shown = [line.split()[2].partition("+")[0] for line in done.stdout.splitlines() if line.startswith("#")]
    assert shown[:5] == ["sample_stop", "nested", *CALLER]
