"""The debuggers under test, and the descriptions of the samples for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.expectations import Stop
from tests.gdb import driver
from tests.gdb.driver import Debugger
from tests.gdb.programs import program
from tests.missing import absent, toolchain_needed
from tests.samples.build import run_command
from tests.samples.catalogue import ABIS

DEBUGGERS = ("pypi", "system")
"""Names that `tests.gdb.driver.find` knows: the newest GDB, and the system's own, mostly an older one."""


def title(name: str, abi: str = "amd64") -> str:
    """Return the name of a debugger in the table."""
    found = driver.find(name, abi)
    return f"GDB {found.version[0]}" if found else f"the GDB of {'the system' if name == 'system' else 'PyPI'}"


def debugger(name: str, abi: str) -> Debugger:
    """Return a GDB that supports an ABI; skip the test if there is none."""
    found = driver.find(name, abi)
    return found or absent(f"{title(name, abi)} is not installed for {abi}")


def newest(abi: str) -> Debugger:
    """Return the newest installed GDB."""
    return driver.find("pypi", abi) or debugger("system", abi)


def described(stop: Stop, executable: Path, abi: str, debugger: str = "pypi") -> dict[str, Any]:
    """Return a stop in the form for the functions inside GDB; skip the test if nothing can run its program."""
    with toolchain_needed():
        run_command(executable, abi)
    told = {**program(stop, executable, abi), "libraries": str(executable.parent)}
    if (abi, debugger, stop.sample) == ("aarch64", "system", "signals"):
        # Before 18, GDB gives up if a signal frame's vectors are shorter than those of the emulator's description.
        told["emulator"] = [f"{part},sve=off" if part == "max" else part for part in told["emulator"]]
    return told


def sysroot(abi: str) -> str:
    """Return the folder with the emulated machine's libraries; empty: it uses the system's own, or none."""
    emulator = ABIS[abi].emulator
    return emulator[emulator.index("-L") + 1] if "-L" in emulator else ""
