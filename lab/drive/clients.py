"""Clients of the debuggers other than a terminal: scripts, GDB/MI, and the Debug Adapter Protocol."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lab.drive.channel import Channel
from tests.hanging import HANG

_CONSOLE = "-interpreter-exec console "
_EXECUTING = re.compile(r"(next|step|stepi|nexti|finish|continue|until|advance)\b ?(.*)")
_RECORDS = {"stepi": "step-instruction", "nexti": "next-instruction", "advance": "until"}
_PROMPT = b"(gdb) \n"
_HEADER = b"\r\n\r\n"
_LEVELS = 400
"""Number of frames that an editor requests.  VS Code requests 20, and further ones where its user scrolls.  All frames
of a deep stack take GDB's adapter a minute."""
_DEEP = 4
"""Number of frames whose variables an editor requests."""


class Script(Channel):
    """A script in the debugger's own Python gives the commands (`serve` in the folder `inside`)."""

    def _give(self, lines: Sequence[str], asked: str, seconds: float) -> str:
        self._write(json.dumps([*lines, asked]) + "\n")
        return self._read_until(self._mark(), seconds)

    def quit(self, seconds: float) -> None:
        self._write("\n")
        super().quit(seconds)


class MachineInterface(Channel):
    """GDB/MI: commands have other names, and answers are records."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        super().__init__(command, environment)
        self._read_until(_PROMPT, HANG)

    def _give(self, lines: Sequence[str], asked: str, seconds: float) -> str:
        shown = ""
        for line in (*lines, *_LOOKS[: 0 if asked.split()[2] == "0" else None], asked):
            shown += self._command(_in_mi(line), seconds)
        assert self._mark().decode() in shown
        return shown

    def _command(self, command: str, seconds: float) -> str:
        self._write(f"{command}\n")
        shown = self._read_until(_PROMPT, seconds)
        while re.search(r"^\^running", shown, re.M) and not re.search(r"^\*stopped|^\^error", shown, re.M):
            shown += self._read_until(_PROMPT, seconds)
        return shown

    def quit(self, seconds: float) -> None:
        self._write("-gdb-exit\n")
        self._await_end(seconds)


_LOOKS = ("-stack-list-frames", "-stack-list-arguments 1 0 3", "-stack-list-variables --thread 1 --frame 1 1")
"""The requests of an editor at each stop."""


def _in_mi(line: str) -> str:
    """Return a GDB command in MI's notation."""
    if line.startswith("-"):
        return line
    match = _EXECUTING.fullmatch(line)
    if match:
        return f"-exec-{_RECORDS.get(match[1], match[1])} {match[2]}".strip()
    if line.startswith("tbreak *") or (line.startswith("tbreak ") and " if " not in line):
        return "-break-insert -t " + line.partition(" ")[2]
    if line.startswith("return"):
        return "-exec-return"
    quoted = line.replace("\\", "\\\\").replace('"', '\\"')
    return f'{_CONSOLE}"{quoted}"'


class Adapter(Channel):
    """The Debug Adapter Protocol: an editor's requests, including those after each stop."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        super().__init__(command, environment)
        self._requests = 0
        self._started = False
        self._breakpoints: list[str] = []
        self._events: Counter[str] = Counter()

    def _counts(self) -> dict[str, dict[str, int]]:
        return {**super()._counts(), "events": dict(self._events)}

    def _give(self, lines: Sequence[str], asked: str, seconds: float) -> str:
        shown = [self._do(line, seconds) for line in lines]
        if self._started:
            shown += [self._look(seconds)] if asked.split()[2] == "1" else []
            self._ask("evaluate", seconds, expression=asked, context="repl")
        else:
            self._states.write_text(json.dumps({"number": self._number}) + "\n", encoding="utf-8")
        return "\n".join(shown)

    def _do(self, line: str, seconds: float) -> str:
        word, _, rest = line.partition(" ")
        if word == "launch":
            self._ask("initialize", seconds, adapterID="drive", clientID="drive", linesStartAt1=True)
            program, self._breakpoints = json.loads(rest)
            self._send("launch", program=program)
            self._event(seconds, "initialized")
            self._break(seconds)
            self._ask("configurationDone", seconds)
            self._started = True
            return self._stop(seconds)
        if word == "break":
            self._breakpoints = rest.split()
            return self._break(seconds)
        if word == "repl":
            return _masked(self._ask("evaluate", seconds, expression=rest, context="repl", **self._frame()))
        more = {"granularity": "instruction"} if word.endswith("i") else {}
        request = {"stepi": "stepIn", "nexti": "next"}.get(word, word)
        response = self._ask(request, seconds, threadId=self._thread, **more)
        return self._stop(seconds) if response["success"] else _masked(response)

    def _break(self, seconds: float) -> str:
        wanted = [{"name": name} for name in self._breakpoints]
        return _masked(self._ask("setFunctionBreakpoints", seconds, breakpoints=wanted))

    def _frame(self) -> dict[str, int]:
        return {"frameId": self._frames[0]["id"]} if self._frames else {}

    _thread = 1
    _frames: Sequence[Mapping[str, Any]] = ()

    def _stop(self, seconds: float) -> str:
        event = self._event(seconds, "stopped", "terminated")
        body = dict(event.get("body") or {})
        self._frames = ()
        self._thread = body.get("threadId", self._thread)
        self._live = event["event"] == "stopped"
        return f"{event['event']} {body.get('reason')}"

    _live = False

    def _look(self, seconds: float) -> str:
        """Return the data that an editor shows at a stop."""
        if not self._live:
            return "not stopped"
        answer = self._ask("stackTrace", seconds, threadId=self._thread, startFrame=0, levels=_LEVELS)
        self._frames = answer.get("body", {}).get("stackFrames", [])
        shown = [_masked(self._frames)]
        for frame in self._frames[:_DEEP]:
            scopes = self._ask("scopes", seconds, frameId=frame["id"])
            for scope in scopes.get("body", {}).get("scopes", []):
                if scope["name"] in ("Arguments", "Locals"):
                    inside = self._ask("variables", seconds, variablesReference=scope["variablesReference"])
                    shown.append(_masked(inside.get("body", inside.get("message"))))
        return "\n".join(shown)

    def quit(self, seconds: float) -> None:
        self._send("disconnect", terminateDebuggee=True)
        self._await_end(seconds)

    def _send(self, command: str, **arguments: Any) -> int:
        self._requests += 1
        request = {"seq": self._requests, "type": "request", "command": command, "arguments": arguments}
        content = json.dumps(request)
        self._write(f"Content-Length: {len(content)}\r\n\r\n{content}")
        return self._requests

    def _ask(self, command: str, seconds: float, **arguments: Any) -> Any:
        number = self._send(command, **arguments)
        return self._await(seconds, lambda message: message.get("request_seq") == number)

    def _event(self, seconds: float, *names: str) -> Any:
        return self._await(seconds, lambda message: message.get("event") in names)

    def _await(self, seconds: float, wanted: Any) -> Any:
        deadline = time.monotonic() + seconds
        for index, message in enumerate(self._early):
            if wanted(message):
                return self._early.pop(index)
        while True:
            header = self._read_until(_HEADER, deadline - time.monotonic())
            size = int(header.rpartition("Content-Length: ")[2])
            message = json.loads(self._read_bytes(size, deadline - time.monotonic()))
            if message.get("type") == "event" and message["event"] != "output":  # it may come in several parts
                self._events[message["event"]] += 1
            if wanted(message):
                return message
            if message.get("type") == "event" and message.get("event") in ("stopped", "terminated", "initialized"):
                self._early.append(message)

    @property
    def _early(self) -> list[Any]:
        """Return events that arrived before they were expected."""
        if not hasattr(self, "_kept"):
            self._kept: list[Any] = []
        return self._kept


def _masked(value: Any) -> str:
    """Return a message without the numbers that count messages and objects, and without the program's path."""
    text = json.dumps(value, sort_keys=True)
    text = re.sub(r'"(seq|request_seq|variablesReference|id|threadId)": \d+', r'"\1": N', text)
    return re.sub(r'"path": "[^"]*"', '"path": "P"', text)
