"""The Python of this process, and the optional extras of this package."""

from __future__ import annotations

import os
import platform
import sys

from sframe_unwind.errors import PACKAGES
from sframe_unwind.machine.finding import Finding
from sframe_unwind.machine.running import python_version, run

_ABOUT = "Python"
_MODULES = {
    "code": "pyvex, bitstring, capstone",
    "survey": "libarchive",
    "cluster": "distributed",
    "perf": "zstandard" if sys.version_info < (3, 14) else "compression.zstd",
    "kernel": "drgn",
}
"""The modules of each extra that has no debugger."""
_SERVES = {
    "code": "verify --against code",
    "survey": "survey of packages and archives",
    "cluster": "survey --dask",
    "perf": "recordings of perf record -z",
    "kernel": "backtrace --vmcore",
}
"""The commands that need each extra."""


def probe() -> tuple[Finding, ...]:
    """Return the version of this Python, and which extras can be imported."""
    version = platform.python_version()
    return (
        Finding(_ABOUT, "version", python_version(version), f"{version} ({sys.executable})"),
        *map(_extra, _MODULES),
    )


def _extra(name: str) -> Finding:
    """Return whether the modules of an extra can be imported, which needs their libraries too."""
    # pyvex asks for the user's name, which this package gives where there is none.
    environment = {"LOGNAME": str(os.getuid()), **os.environ}
    done = run([sys.executable, "-c", f"import {_MODULES[name]}\nprint('@imported')"], environment)
    if "@imported" in done.output:
        return Finding(_ABOUT, f"extra [{name}]", True, "installed")
    lines = done.output.strip().splitlines()
    reason = done.failure or (lines[-1] if lines else "no reason is known")
    remedy = f"for {_SERVES[name]}: pip install {PACKAGES[name]}"
    return Finding(_ABOUT, f"extra [{name}]", False, reason, remedy)
