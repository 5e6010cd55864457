"""The end of programs that run at a terminal of pexpect."""

from __future__ import annotations

import sys

import pexpect

from tests.hanging import HANG
from tests.terminals import close
from tests.waiting import runs

STUBBORN = """
import signal
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGCONT):
    signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_a_program_has_ended_even_if_that_takes_longer_than_pexpect_waits() -> None:
    child = pexpect.spawn(sys.executable, ["-c", STUBBORN], timeout=HANG)
    child.expect_exact("ready")
    child.ptyproc.delayafterterminate = 0  # pexpect asks at once, as if the process took long
    close(child)
    assert not runs(child.pid)


def test_a_program_that_has_ended_is_closed() -> None:
    child = pexpect.spawn(sys.executable, ["-c", ""], timeout=HANG)
    child.expect(pexpect.EOF)
    close(child)
    assert (child.exitstatus, child.signalstatus) == (0, None)
