"""TCP ports for servers that tests start."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

_FIRST = 10000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The ports that the kernel gives to programs that ask for any: a server could find its port taken by a connection."""
_reserved: list[socket.socket] = []


def free_port() -> int:
    """Return an unused port, which no other run of the tests on this machine gets until this process ends."""
    end = int(_RANGE.read_text(encoding="ascii").split()[0]) if _RANGE.exists() else 32768
    for port in random.SystemRandom().sample(range(_FIRST, end), end - _FIRST):
        if _is_free(port) and _reserve(port):
            return port
    raise OSError(f"all ports from {_FIRST} to {end} are in use")


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False


def _reserve(port: int) -> bool:
    """Reserve a port by an abstract name, which the kernel releases with the process, and which has no file."""
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(f"\0sframe-unwind-test-port-{port}")
    except OSError:
        held.close()
        return False
    _reserved.append(held)
    return True
