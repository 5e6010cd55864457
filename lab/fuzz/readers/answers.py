"""The answer of a debuginfod server: status line, headers, and a file, which enters a cache that others trust."""

from __future__ import annotations

import atexit
import functools
import socket
import socketserver
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest

from lab.fuzz import file_fields
from lab.fuzz.fields import Field
from lab.fuzz.scratch import memory_folder
from lab.fuzz.seeds import Seed
from sframe_unwind.process.debuginfod import Debuginfod
from sframe_unwind.process.elf_file import ElfFile
from sframe_unwind.process.files import DEBUG_INFO, EXECUTABLE
from tests.elf.objects import run

BUILD_ID = "8899aabbccddeeff00112233445566778899aabb"
LONGEST_LINE = 600
"""Maximum number of characters of a message: the server's words are truncated."""
_LARGEST = 1 << 20
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"


@functools.cache
def files() -> tuple[bytes, bytes]:
    """Return a debug file and the executable, with one build ID."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "one.c").write_text("int start(void) { return 0; }\n", encoding="utf-8")
        flags = ("-g", "-static", "-nostdlib", "-Wl,-e,start", "-Wl,-z,noseparate-code", f"-Wl,--build-id=0x{BUILD_ID}")
        run("gcc", *flags, folder / "one.c", "-o", folder / "whole")
        run("objcopy", "--only-keep-debug", folder / "whole", folder / "debug")
        run("strip", folder / "whole", "-o", folder / "executable")
        return (folder / "debug").read_bytes(), (folder / "executable").read_bytes()


@functools.cache
def seeds() -> tuple[Seed, ...]:
    """Return correct answers, and others that servers and proxies can send."""
    found = []
    for name, file in zip((DEBUG_INFO, EXECUTABLE), files()):
        length = b"Content-Length: %d\r\n" % len(file)
        found += [
            Seed(f"{name} with length", _HEAD + length + b"\r\n" + file, 0),
            Seed(f"{name} until the end", _HEAD + b"\r\n" + file, 0),
            Seed(f"{name} in chunks", _HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + _chunked(file), 0),
            Seed(f"{name} by HTTP 1.0", b"HTTP/1.0 200 OK\r\n" + length + b"\r\n" + file, 0),
            Seed(f"{name} after 100", b"HTTP/1.1 100 Continue\r\n\r\n" + _HEAD + length + b"\r\n" + file, 0),
        ]
    page = b"<html>please log in</html>"
    return (
        *found,
        Seed("page", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(page) + page, 0),
        Seed("missing", b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 0),
        Seed("busy", b"HTTP/1.1 503 " + b"busy " * 200 + b"\r\nRetry-After: 10\r\n\r\n", 0),
        Seed("elsewhere", b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", 0),
        Seed("wants a password", b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\n\r\n", 0),
    )


def _chunked(data: bytes) -> bytes:
    half = len(data) // 2
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (data[:half], data[half:], b""))


def fields(seed: Seed) -> tuple[Field, ...]:
    """Return the fields of the file, and all bytes before it."""
    start = seed.data.find(b"\x7fELF")
    head = [Field(at, 1, "little") for at in range(start if start >= 0 else len(seed.data))]
    return (*head, *(file_fields.fields(seed) if start >= 0 and b"chunked" not in seed.data else ()))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    answer = b""

    def handle_error(self, *_: object) -> None:
        """Print nothing: the client may end the connection at any time."""


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(1 << 16)
        assert isinstance(self.server, _Server)
        self.request.sendall(self.server.answer)


@functools.cache
def _server() -> _Server:
    server = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    atexit.register(server.shutdown)
    return server


@functools.cache
def _cache() -> Path:
    return memory_folder()


def exercise(seed: Seed, _: Counter[str]) -> str:
    """Download a file.  The input's number chooses the kind of file, and whether much data follows the answer."""
    kind = (DEBUG_INFO, EXECUTABLE)[seed.address // 10 % 2]
    server, cache = _server(), _cache()
    server.answer = seed.data + bytes(3 * _LARGEST if seed.address % 50 == 0 else 0)
    address = "http://{}:{}".format(*server.server_address)
    said: list[str] = []
    variables = {"DEBUGINFOD_URLS": address, "DEBUGINFOD_CACHE_PATH": str(cache), "DEBUGINFOD_MAXSIZE": str(_LARGEST)}
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(socket, "getaddrinfo", _only_here)
        path = Debuginfod(variables, said.append).fetch(BUILD_ID, kind)
    kept = [file for file in cache.rglob("*") if file.is_file()]
    assert [str(file) for file in kept] == ([path] if path else []), kept
    assert len(said) <= 1, said
    assert all(len(line) <= LONGEST_LINE for line in said), said
    if path is None:
        return "refused" if said else "missing"
    _check(Path(path), kind)
    Path(path).unlink()
    return kind


def _only_here(host: str, port: int, *_: object) -> list[tuple[object, ...]]:
    """Resolve a name without a name server: a damaged answer can redirect the client to any host."""
    if host != "127.0.0.1":
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]


def _check(path: Path, kind: str) -> None:
    """Check that others can use a file: it has the build ID, is of the kind, and is not a part of the sent data."""
    data, file = path.read_bytes(), ElfFile(str(path))
    assert file.build_id == BUILD_ID
    assert not any(whole != data and whole.startswith(data) for whole in files())
    assert kind != EXECUTABLE or data != files()[0]
