"""Downloads debug files by build ID from debuginfod servers, into the cache that elfutils and GDB use, too.

Other programs trust what they find in that cache.  So a file enters it only when it is complete and has the build ID.
"""

from __future__ import annotations

import http.client
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Callable

from sframe_unwind.errors import FileError
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.replacing import replacing

SERVERS, CACHE, TIMEOUT, MAX_SIZE = (
    *("DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH"),
    *("DEBUGINFOD_TIMEOUT", "DEBUGINFOD_MAXSIZE"),
)
"""Environment variables, as in elfutils."""
_SECONDS = 90
"""For all downloads of a command together."""
_LARGEST = 2 << 30
"""Bytes of a debug file."""
_CHUNK = 1 << 20
_SILENCE = 10
"""Seconds to wait for a server's next byte."""


class Debuginfod:
    """A client.

    :param environment: the variables that name servers, cache and limits.
    :param report: called with one line for each server that fails.
    :raises FileError: no server is named, or a variable has no number.
    """

    def __init__(self, environment: Mapping[str, str], report: Callable[[str], None]) -> None:
        self._servers = [
            server.rstrip("/")
            for server in environment.get(SERVERS, "").split()
            if server.startswith(("http://", "https://"))
        ]
        if not self._servers:
            raise FileError(f"--debuginfod: {SERVERS} names no server (http:// or https://)")
        home = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', '/nonexistent')}/.cache"
        self._cache = Path(environment.get(CACHE) or f"{home}/debuginfod_client")
        self._seconds = _number(environment, TIMEOUT, _SECONDS)
        self._largest = _number(environment, MAX_SIZE, _LARGEST)
        self._report = report
        self._deadline: float | None = None

    def fetch(self, build_id: str) -> str | None:
        """Return the path of the debug file for a build ID, or ``None``.

        A cached file with another build ID is downloaded again: a client that checks nothing may have kept an error
        page of a proxy there.  elfutils keeps an empty file where the servers have none.
        """
        target = self._cache / build_id / "debuginfo"
        with suppress(OSError):  # the cache may belong to another user
            if target.is_file() and _build_id(target) == build_id:
                return str(target)
        if self._deadline is None:
            self._deadline = time.monotonic() + self._seconds
        for server in list(self._servers):
            try:
                return self._download(f"{server}/buildid/{build_id}/debuginfo", target, build_id)
            except urllib.error.HTTPError as error:
                if error.code != http.client.NOT_FOUND:
                    self._give_up(server, f"{error.code} {error.reason}")
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
                self._give_up(server, str(reason) or type(error).__name__)
        return None

    def _give_up(self, server: str, why: str) -> None:
        self._servers.remove(server)
        self._report(f"debuginfod: {server}: {why}: this server is not asked again")

    def _download(self, url: str, target: Path, build_id: str) -> str:
        request = urllib.request.Request(url, headers={"User-Agent": "sframe-unwind"})
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            urllib.request.urlopen(request, timeout=self._left()) as answer,
            replacing(target, 0o600, follow=False) as temporary,
        ):
            with temporary.open("wb") as stream:
                for chunk in self._chunks(answer):
                    stream.write(chunk)
            if _build_id(temporary) != build_id:
                raise OSError(f"the answer for build ID {build_id} is not an ELF file with this build ID")
        return str(target)

    def _chunks(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        size = 0
        while chunk := answer.read1(_CHUNK):
            size += len(chunk)
            if size > self._largest:
                raise OSError(f"a file of more than {self._largest:,} bytes")
            self._left()
            yield chunk
        if answer.length:  # read1 ends silently where the connection does
            raise OSError(f"the answer ends after {size:,} of {size + answer.length:,} bytes")

    def _left(self) -> float:
        """Return how many seconds to wait.

        :raises TimeoutError: the time is over.
        """
        left = (self._deadline or 0) - time.monotonic()
        if left <= 0:
            raise socket.timeout(f"not done after {self._seconds} s")
        return min(left, _SILENCE)


def _build_id(path: Path) -> str:
    """Return the build ID of a file in hexadecimal digits; empty: it has none, or is not an ELF file."""
    try:
        return ElfFile(str(path)).build_id
    except FileError:
        return ""


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not text.isdecimal() or len(text) > 18:
        raise FileError(f"{name}: expected a number, found {text[:40]!r}")
    return int(text) or default
