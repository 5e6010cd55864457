"""Ports for servers: two runs of the tests at once never get the same one."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ports
from tests.hanging import HANG

CHECKOUT = Path(__file__).resolve().parents[1]
OTHER = "from tests.ports import free_port; print(free_port(), flush=True); input()"


def test_port_of_another_run_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other run has not started its server yet, so that the port itself is not in use."""
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER], cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        _offer(monkeypatch, *range(theirs, theirs + 100))  # other programs may have some of them
        assert theirs < ports.free_port() < theirs + 100
        other.communicate("\n", timeout=HANG)
    _offer(monkeypatch, theirs)
    assert ports.free_port() == theirs


def test_port_in_use_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        used = int(server.getsockname()[1])
        _offer(monkeypatch, used)
        with pytest.raises(OSError, match="are in use"):
            ports.free_port()


def _offer(monkeypatch: pytest.MonkeyPatch, *choice: int) -> None:
    """Make the ports of this process be chosen in an order."""
    monkeypatch.setattr(random.SystemRandom, "sample", lambda *_: list(choice))
