"""Programs start where it is refused to turn address space randomisation off."""

from __future__ import annotations

import subprocess
import sys

from sframe_unwind.machine import personality
from tests.hanging import HANG
from tests.lldb.debuggers import CHECKOUT, find
from tests.lldb.driver import environment
from tests.machine.refusing import REFUSING
from tests.missing import toolchain_needed
from tests.samples.build import build

SECONDS = HANG


def run(*command: str, status: int = 0) -> str:
    """Return the output of a command in the checkout, which must end with a status."""
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment(sys.executable), capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_refusal_is_found_and_what_is_probed_stays() -> None:
    asked = "from sframe_unwind.machine.personality import *; print(refusal(), *lldb_settings(), sep='; ')"
    randomised = "print(open('/proc/self/personality').read().strip())"
    alone = run(sys.executable, "-c", randomised)
    assert run(*REFUSING, sys.executable, "-c", asked) == f"Operation not permitted; {personality.LLDB_SETTING}\n"
    assert run(sys.executable, "-c", f"{asked}\n{randomised}").splitlines()[-1:] == alone.splitlines()


def test_lldb_starts_a_program_where_it_is_refused() -> None:
    """LLDB alone does not."""
    with toolchain_needed():
        program = build("callback", variant="O0")
    typed = [word for line in ("breakpoint set -n sample_stop", "run", "bt") for word in ("-o", line)]
    options = ("--no-lldbinit", "--batch", *typed, str(program))
    assert "personality set failed" in run(*REFUSING, find("newest"), *options, status=1)
    said = run(*REFUSING, sys.executable, "-m", "sframe_unwind", "lldb", *options)
    assert "frame #0: " in said
    assert "sample_stop" in said
