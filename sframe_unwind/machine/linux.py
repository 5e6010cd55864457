"""Probes the kernel: whether it permits attaching to processes, recording, and core files."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable

from sframe_unwind.machine.finding import Finding
from sframe_unwind.machine.personality import refusal
from sframe_unwind.machine.running import SECONDS

RANDOMISATION = "fixed addresses"
ATTACHES, RECORDS, CORES, SECCOMP = "attaches to processes", "perf_event_open", "core files", "seccomp"
_ABOUT = "Linux"
_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_PATTERN = Path("/proc/sys/kernel/core_pattern")
_CONTAINER = "in a container: docker run"

_ATTACH = """\
import ctypes, os, sys
library = ctypes.CDLL(None, use_errno=True)
library.ptrace.argtypes = (ctypes.c_long,) * 4
library.ptrace.restype = ctypes.c_long
seize = 0x4206
print(ctypes.get_errno() if library.ptrace(seize, int(sys.argv[1]), 0, 0) == -1 else 0)
"""
"""Seizes a process that is not its child, as ``gdb -p`` does, and prints the error number."""

_NUMBERS = {"x86_64": 298, "aarch64": 241, "s390x": 331}
"""The number of the system call ``perf_event_open``."""
_SOFTWARE, _EXCLUDE_KERNEL = 1, 1 << 5
_ATTRIBUTE_SIZE, _SIZE_AT, _FLAGS_AT = 112, 4, 40
"""Size of ``struct perf_event_attr`` in version 5, and the offsets of its size and its flags, in bytes."""


def probe() -> tuple[Finding, ...]:
    """Return the findings about the kernel."""
    probes = (
        (RANDOMISATION, randomisation),
        (ATTACHES, attaches),
        (RECORDS, records),
        (CORES, cores),
        (SECCOMP, _seccomp),
    )
    return tuple(_guarded(name, one) for name, one in probes)


def _guarded(name: str, one: Callable[[], Finding]) -> Finding:
    """Return the finding of a probe; if the probe fails, that is the finding."""
    try:
        return one()
    except (OSError, ImportError, subprocess.SubprocessError) as error:
        return Finding(_ABOUT, name, None, f"cannot be probed: {error}")


def randomisation() -> Finding:
    """Return whether debuggers can turn address space randomisation off, so that each run has the same addresses."""
    refused = refusal()
    remedy = f"{_CONTAINER} --security-opt seccomp=unconfined"
    return Finding(
        _ABOUT, RANDOMISATION, not refused, f"randomisation stays on: {refused}" if refused else "yes", remedy
    )


def attaches() -> Finding:
    """Return whether a process may be attached to that the debugger did not start."""
    scope = _setting(_SCOPE)
    told = f" (ptrace_scope {scope})" if scope else ""
    with subprocess.Popen(["sleep", str(SECONDS)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as other:
        try:
            done = _python(_ATTACH, str(other.pid))
        finally:
            other.kill()
    if not done.isdigit():
        return Finding(_ABOUT, ATTACHES, None, done or "the probe printed nothing")
    number = int(done)
    remedy = "sysctl kernel.yama.ptrace_scope=0" if scope not in ("", "0") else f"{_CONTAINER} --cap-add SYS_PTRACE"
    found = f"{os.strerror(number)}{told}" if number else f"yes{told}"
    return Finding(_ABOUT, ATTACHES, not number, found, remedy if number else "")


def records() -> Finding:
    """Return whether this process may record events of its own, as ``perf record`` does."""
    number = _NUMBERS.get(platform.machine())
    if number is None:
        return Finding(_ABOUT, RECORDS, None, f"its number is not known for {platform.machine()}")
    attribute = bytearray(_ATTRIBUTE_SIZE)
    attribute[0:4] = _SOFTWARE.to_bytes(4, sys.byteorder)
    attribute[_SIZE_AT : _SIZE_AT + 4] = _ATTRIBUTE_SIZE.to_bytes(4, sys.byteorder)
    attribute[_FLAGS_AT : _FLAGS_AT + 8] = _exclude_kernel().to_bytes(8, sys.byteorder)
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    pointer = (ctypes.c_char * _ATTRIBUTE_SIZE).from_buffer(attribute)
    descriptor = library.syscall(ctypes.c_long(number), pointer, 0, -1, -1, ctypes.c_ulong(0))
    level = _setting(_PARANOID)
    told = f" (perf_event_paranoid {level})" if level else ""
    if descriptor == -1:
        reason = os.strerror(ctypes.get_errno())
        in_container = f"{_CONTAINER} --security-opt seccomp=unconfined"
        remedy = in_container if _filter() not in (None, "0") else "sysctl kernel.perf_event_paranoid=2"
        return Finding(_ABOUT, RECORDS, False, f"{reason}{told}", remedy)
    os.close(descriptor)
    return Finding(_ABOUT, RECORDS, True, f"yes{told}")


def _exclude_kernel() -> int:
    """Return the flag as a bit field of 64 bits, which begin at the other end in big-endian machines."""
    return _EXCLUDE_KERNEL if sys.byteorder == "little" else 1 << 63 - 5


def cores() -> Finding:
    """Return whether the kernel writes a core file beside a process that crashes."""
    pattern = _setting(_PATTERN)
    with tempfile.TemporaryDirectory(prefix="sframe-unwind-") as folder:
        allow = "import os, resource; hard = resource.getrlimit(resource.RLIMIT_CORE)[1]; "
        _python(allow + "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)); os.abort()", folder=folder)
        there = any(Path(folder).iterdir())
    if there:
        return Finding(_ABOUT, CORES, True, f"in the process's folder (core_pattern {pattern})")
    if not resource.getrlimit(resource.RLIMIT_CORE)[1]:
        return Finding(_ABOUT, CORES, False, "their size is limited to 0", "ulimit -H -c unlimited, as root")
    return Finding(_ABOUT, CORES, False, f"elsewhere (core_pattern {pattern})", "sysctl kernel.core_pattern=core")


def _seccomp() -> Finding:
    """Return whether system calls are filtered; the other probes find out which are refused."""
    mode = _filter()
    if mode is None:
        return Finding(_ABOUT, SECCOMP, None, "this kernel does not tell")
    return Finding(_ABOUT, SECCOMP, True, "no filter" if mode == "0" else "a filter is installed, as in containers")


def _filter() -> str | None:
    """Return the mode of the filter of system calls; ``0``: there is none."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return next((line.split()[1] for line in status.splitlines() if line.startswith("Seccomp:")), None)


def _python(script: str, *arguments: str, folder: str | None = None) -> str:
    """Run a script in a Python of its own; return its output."""
    command = [sys.executable, "-I", "-c", script, *arguments]
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    return done.stdout.strip()


def _setting(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
