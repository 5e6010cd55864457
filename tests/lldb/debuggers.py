"""The LLDBs under test."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.hanging import HANG
from tests.launchers import launcher, own
from tests.missing import absent, not_on_this_system

CHECKOUT = Path(__file__).resolve().parents[2]
PLUGIN = CHECKOUT / "lldb_plugin" / "sframe_lldb.py"

_PATHS = {
    "22.1": CHECKOUT / ".cache" / "lldb-22.1" / "bin" / "lldb",
    "newest": own("lldb"),
}
if "SFRAME_TEST_LLDB" in os.environ:
    _PATHS["other"] = Path(os.environ["SFRAME_TEST_LLDB"])
FIRST_WITH_PROVIDER = 22
"""The first version of LLDB that takes frames from a plugin."""
PROVIDING = tuple(_PATHS)
"""LLDBs that take frames from a plugin: the oldest, the one of this environment, and one that the environment names."""


def path_of(name: str) -> Path:
    """Return the path of an LLDB, which may be missing."""
    return launcher("lldb") if name == "newest" else _PATHS[name]


def find_own() -> str:
    """Return the path of the program that the wheel installs, for tests of what a user starts; skip them without it."""
    find("newest")
    return str(own("lldb"))


def find(name: str) -> str:
    """Return the path of an LLDB; skip the test without it."""
    path = path_of(name)
    if not path.exists():
        absent(f"{path} is not there: LLDB {name} stays untested")
    return str(path)


def takes_registers(name: str) -> bool:
    """Return whether an LLDB takes registers from a frame of a plugin: since version 24."""
    done = subprocess.run([find(name), "--version"], capture_output=True, text=True, timeout=HANG, check=True)
    version = next(word for word in done.stdout.split() if word[:1].isdigit())
    return int(version.partition(".")[0]) >= 24


@functools.cache
def _of_the_system() -> tuple[str | None, int]:
    """Return the path of the system's LLDB, if there is one, and the first part of its version."""
    scripts = Path(sys.executable).parent
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(folder) != scripts]
    path = shutil.which("lldb", path=os.pathsep.join(folders))
    if path is None:
        return None, 0
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=HANG, check=False)
    words = done.stdout.split()
    version = next((word for word in words if word[:1].isdigit()), "0")
    return path, int(version.partition(".")[0])


def find_without_provider() -> str:
    """Return the path of an LLDB that takes no frames; skip the test without it."""
    path, version = _of_the_system()
    if not path:
        absent("there is no LLDB without frame providers: what the plugin does there stays untested")
    if version >= FIRST_WITH_PROVIDER:
        not_on_this_system(f"the system's LLDB is version {version}, which has frame providers")
    return path
