"""The packets that are counted in the logs of the debuggers."""

from __future__ import annotations

from pathlib import Path

from lab.drive import packets

_LOG = rb"""w $qSupported:multiprocess+;swbreak+#c6
r +$PacketSize=20000;QPassSignals+#49
w +$m7ffff7fe4000,40#0a
r $m#6d
w $vCont;s:p1.1;c:p1.-1#f7
lldb-server         < 166> send packet: $qXfer:features:read:target.xml:0,1ffff#7d
lldb-server         <   5> read packet: $OK#9a
lldb-server         <  21> send packet: $x7ffff7ff0000,200#ab
lldb-server         <   5> send packet: $?#3f
"""


def test_what_the_debugger_sends_is_counted_by_name(tmp_path: Path) -> None:
    assert packets.counted(tmp_path) == {}
    (tmp_path / packets.LOG).write_bytes(_LOG + _LOG[:40])
    assert packets.counted(tmp_path) == {"qSupported": 2, "m": 1, "vCont": 1, "qXfer": 1, "x": 1, "?": 1}
