"""GDB: stacks of contexts that do not run equal those of GDB alone while they ran, also in their core files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.abis.debuggers import DEBUGGERS, debugger, sysroot
from tests.contexts import expected
from tests.contexts.expected import BY_HAND, STOPS, built, check, commands, shown
from tests.gdb.driver import call
from tests.process.command import NOWHERE, backtrace
from tests.samples.catalogue import ABIS, WITH_LIBC


@pytest.mark.parametrize("name", list(DEBUGGERS))
@pytest.mark.parametrize("abi", WITH_LIBC)
def test_stacks(abi: str, name: str, tmp_path: Path) -> None:
    gdb = debugger(name, abi)
    executable = built(abi, tmp_path)
    emulator = list(ABIS[abi].emulator)
    if (abi, name) == ("aarch64", "system"):
        # GDB 13 gives up if a signal frame's vectors are shorter than those of the emulator's description.
        emulator = [f"{part},sve=off" if part == "max" else part for part in emulator]
    program = {
        "executable": str(executable),
        "arguments": [],
        "emulator": emulator,
        "place": "sample_stop",
        "hits": STOPS,
        "signals": ["SIGILL"],
    }
    by_hand = {register: f"fresh.uc_mcontext.{member}" for register, member in BY_HAND[abi].items()}
    told: dict[str, Any] = {"program": program, "sysroot": sysroot(abi), "folder": str(tmp_path)}
    answer = call(gdb, "tests.contexts.inside.in_gdb.collect", commands=commands(abi), by_hand=by_hand, **told)
    for said, has_trampoline in ((answer["live"], True), (answer["dead"], answer["saved"])):
        check(abi, answer["stops"], said, has_trampoline=has_trampoline)
        check_fresh(answer, dict(zip(commands(abi), said))[f"sframe bt {expected.FRESH}"])
    succeeded, text = answer["live"][-1]
    assert (succeeded, "may-call-functions is off" in text) == (False, True)
    assert answer["selected"] == "sample_stop"
    check_command(abi, answer, executable)


def check_fresh(answer: dict[str, Any], said: tuple[bool, str]) -> None:
    """Check a context that never ran against GDB with its registers set by hand."""
    succeeded, text = said
    assert succeeded, text
    by_hand = answer["stops"][STOPS]
    assert shown(text)[0] == (by_hand[0]["name"], by_hand[0]["pc"]), text
    assert [pc for _, pc in shown(text)[1:]] in ([], [by_hand[1]["pc"]] if len(by_hand) > 1 else []), text
    if by_hand[0]["name"] == "fresh_entry":
        assert len(shown(text)) == 2, text


def check_command(abi: str, answer: dict[str, Any], executable: Path) -> None:
    """Check that `sframe-unwind backtrace --regs` for the core file prints the debugger's frames."""
    switched = next(text for command, (_, text) in zip(commands(abi), answer["dead"]) if "bt -regs" in command)
    wanted = shown(switched)
    # The output has no SP.  The function in which the context was left had this SP while it ran.
    innermost = expected.left_in(answer["stops"], "switched_inner")[0]
    registers = f"pc={wanted[0][1]:#x},sp={innermost['sp']:#x},fp=0"
    roots = ("--sysroot", sysroot(abi)) if sysroot(abi) else ()
    done = backtrace("--core", answer["core"], "--exe", executable, "--regs", registers, "--json", *roots, *NOWHERE)
    assert (done.status, done.errors) == (0, ""), done.errors
    assert [(frame["function"], frame["pc"]) for frame in done.threads["context"]] == wanted
