"""Runs a debug server whose standard streams are the connection: what the debugger sends arrives 20 ms later."""

from __future__ import annotations

import os
import subprocess
import sys
import time

_DELAY = 0.02
"""In seconds."""

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
assert server.stdin is not None
while sent := os.read(0, 1 << 16):
    time.sleep(_DELAY)
    server.stdin.write(sent)
    server.stdin.flush()
server.stdin.close()
server.wait()
