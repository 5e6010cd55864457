"""Downloads files by build ID from debuginfod servers, into the cache that elfutils and GDB also use.

Other programs trust the files in that cache.  So a file enters it only if it is complete, has the build ID, and is of
the requested kind: a debug file has the build ID of its executable, but none of its code.
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

from sframe_unwind.elf import opened
from sframe_unwind.elf.constants import PT_LOAD
from sframe_unwind.errors import FileError
from sframe_unwind.process.files import EXECUTABLE
from sframe_unwind.replacing import replacing

SERVERS, CACHE, TIMEOUT, MAX_SIZE = (
    *("DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH"),
    *("DEBUGINFOD_TIMEOUT", "DEBUGINFOD_MAXSIZE"),
)
"""Environment variables, as in elfutils."""
_SECONDS = 90
"""Time limit for all downloads of a command together."""
_LARGEST = 2 << 30
"""Maximum size of a file in bytes."""
_LONGEST_ID = 128
"""Maximum number of digits of a build ID, as in elfutils (``MAX_BUILD_ID_BYTES``)."""
_LONGEST_REASON = 200
"""Maximum number of characters of a server's own words in a message."""
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
        self._fetched: dict[tuple[str, str], str | None] = {}

    def fetch(self, build_id: str, kind: str) -> str | None:
        """Return the path of the file for a build ID, or ``None``.

        A cached file with another build ID is downloaded again: a client without checks may have kept the error page
        of a proxy there.  elfutils keeps an empty file if the servers have none.

        :param kind: :data:`~sframe_unwind.process.files.DEBUG_INFO` or
            :data:`~sframe_unwind.process.files.EXECUTABLE`.
        """
        wanted = build_id, kind
        if wanted not in self._fetched:
            self._fetched[wanted] = self._fetch(build_id, kind) if len(build_id) <= _LONGEST_ID else None
        return self._fetched[wanted]

    def _fetch(self, build_id: str, kind: str) -> str | None:
        target = self._cache / build_id / kind
        with suppress(OSError):  # the cache may belong to another user
            if target.is_file() and not _problem(target, build_id, kind):
                return str(target)
        if self._deadline is None:
            self._deadline = time.monotonic() + self._seconds
        for server in list(self._servers):
            try:
                return self._download(server, target, build_id, kind)
            except urllib.error.HTTPError as error:
                if error.code != http.client.NOT_FOUND:
                    self._give_up(server, f"{error.code} {error.reason}")
            except (OSError, http.client.HTTPException, ValueError) as error:
                if getattr(error, "filename", None):  # the cache, which no other server changes
                    self._servers.clear()
                    self._report(f"debuginfod: {error}: nothing is downloaded")
                    break
                reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
                self._give_up(server, str(reason) or type(error).__name__)
        return None

    def _give_up(self, server: str, why: str) -> None:
        self._servers.remove(server)
        self._report(f"debuginfod: {server}: {why[:_LONGEST_REASON]}: this server is not asked again")

    def _download(self, server: str, target: Path, build_id: str, kind: str) -> str:
        url = f"{server}/buildid/{build_id}/{kind}"
        request = urllib.request.Request(url, headers={"User-Agent": "sframe-unwind"})
        with urllib.request.urlopen(request, timeout=self._left()) as answer:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target, 0o600, follow=False) as temporary:
                with temporary.open("wb") as stream:
                    for chunk in self._chunks(answer):
                        stream.write(chunk)
                if problem := _problem(temporary, build_id, kind):
                    raise OSError(f"the answer for build ID {build_id} {problem}")
        return str(target)

    def _chunks(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        size = 0
        self._check_size(answer.length or 0)
        while chunk := answer.read1(_CHUNK):
            size += len(chunk)
            self._check_size(size)
            self._left()
            yield chunk
        if answer.length:  # read1 reports no error when the connection ends
            raise OSError(f"the answer ends after {size:,} of {size + answer.length:,} bytes")

    def _check_size(self, size: int) -> None:
        if size > self._largest:
            raise OSError(f"a file of more than {self._largest:,} bytes")

    def _left(self) -> float:
        """Return the number of seconds to wait.

        :raises TimeoutError: the time is over.
        """
        left = (self._deadline or 0) - time.monotonic()
        if left <= 0:
            raise socket.timeout(f"not done after {self._seconds} s")
        return min(left, _SILENCE)


def _problem(path: Path, build_id: str, kind: str) -> str:
    """Return the problem with a file for a build ID; empty: there is none."""
    try:
        with opened(path) as binary:
            if binary.build_id != build_id:
                return "is not an ELF file with this build ID"
            parts = [(section.offset, section.size) for section in binary.sections if section.has_contents]
            if kind == EXECUTABLE:
                if binary.is_debug_file:
                    return "is a debug file, without code"
                parts += [(load.offset, load.file_size) for load in binary.segments if load.type == PT_LOAD]
            return "ends before its contents do" if any(sum(part) > binary.size for part in parts) else ""
    except FileError:
        return "is not an ELF file with this build ID"


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not text.isdecimal() or len(text) > 18:
        raise FileError(f"{name}: expected a number, found {text[:40]!r}")
    return int(text) or default
