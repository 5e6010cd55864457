"""Counts the packets that a debugger sends to its debug server, from the debugger's own log."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

LOG = "packets.log"
"""Name of the log in the session's folder."""
_SENT = re.compile(rb"(?:^w |send packet: )[^$\n]*\$([qQvj][A-Za-z]+|.)", re.M)
"""Matches a packet that GDB or LLDB logs, up to its name: a word, or one letter before an address or a number."""


def logging(is_gdb: bool) -> str:
    """Return the command that makes a debugger log its packets."""
    return f"set remotelogfile {LOG}" if is_gdb else f"log enable -f {LOG} gdb-remote packets"


def counted(folder: Path) -> dict[str, int]:
    """Return how many packets of each name the session in a folder has sent so far."""
    log = folder / LOG
    names = _SENT.findall(log.read_bytes()) if log.exists() else []
    return dict(Counter(name.decode(errors="replace") for name in names))
