"""A client of the Debug Adapter Protocol, like an editor."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Callable

from sframe_unwind.machine.personality import refusal
from tests.clients.process import Process

_HEADER = re.compile(rb"Content-Length: (\d+)\r\n\r\n")


class Client:
    """One session; all received messages are kept, and bytes between messages are an error."""

    def __init__(self, process: Process) -> None:
        self.messages: list[dict[str, Any]] = []
        self._process = process
        self._requests = 0

    def ask(self, command: str, **arguments: Any) -> Any:
        """Send a request and return the body of its response, which must be a success."""
        response = self.respond(command, **arguments)
        assert response["success"], response
        return response.get("body")

    def respond(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return its response."""
        number = self.send(command, **arguments)
        return self.await_message(lambda message: message.get("request_seq") == number)

    def send(self, command: str, **arguments: Any) -> int:
        """Send a request; return its number."""
        self._requests += 1
        request = {"seq": self._requests, "type": "request", "command": command, "arguments": arguments}
        content = json.dumps(request).encode()
        self._process.send(b"Content-Length: %d\r\n\r\n" % len(content) + content)
        return self._requests

    def launch(self, program: str, **arguments: Any) -> None:
        """Request the start of a program; the adapter responds later."""
        # Where it is refused to turn randomisation off, LLDB's adapter would start no program.
        randomised = {"disableASLR": False} if refusal() else {}
        self.send("launch", program=program, **randomised, **arguments)

    def event(self, *names: str) -> dict[str, Any]:
        """Wait for one of some events."""
        return self.await_message(lambda message: message.get("event") in names)

    def output(self) -> dict[str, str]:
        """Return all output so far, by its category; an adapter sends one line in one event or in several."""
        texts: dict[str, str] = {}
        for message in self.messages:
            if message.get("event") == "output":
                category = message["body"].get("category", "console")
                texts[category] = texts.get(category, "") + message["body"]["output"]
        return texts

    def await_message(self, wanted: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
        """Read messages until the wanted one arrives, and return it."""
        while True:
            message = self._process.read(_message)
            self.messages.append(message)
            if wanted(message):
                return message


def _message(unread: bytes) -> tuple[dict[str, Any], bytes] | None:
    header = _HEADER.match(unread)
    if not header:
        begun = b"Content-Length: "[: len(unread)]
        assert unread.startswith(begun), f"not of the protocol: {unread[:300]!r}"
        return None
    end = header.end() + int(header[1])
    return (json.loads(unread[header.end() : end]), unread[end:]) if len(unread) >= end else None
