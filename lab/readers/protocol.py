"""The protocol between this program and a reader: JSON lines, a request and an answer for each section.

A request has the bytes of the section (``section``, in hexadecimal digits), where it is loaded (``address``), and the
addresses to look up (``pcs``).  The answer is one of

- ``{"rows": [...]}``: for each address a row, ``null`` or ``{"error": ...}``;
- ``{"refused": why}``: the reader takes nothing of the section;
- ``{"crashed": how}``: it ended by a signal, SIGXCPU if it took too much processor time.

Each section is read in a separate process, which ends with it.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import signal
import sys
import traceback
from typing import Any, Callable, NamedTuple

SECONDS = 5
"""Seconds of processor time that one section may take; each thousand addresses may take as many again."""
_PROT_NONE = 0


class Request(NamedTuple):
    """One section to read."""

    section: bytes
    address: int
    pcs: list[int]

    @property
    def seconds(self) -> int:
        """How many seconds of processor time a reader may take, or a program that it starts."""
        return SECONDS * (1 + len(self.pcs) // 1000)


class RefusedError(Exception):
    """The reader takes nothing of the section."""


def serve(read: Callable[[Request], list[Any]]) -> None:
    """Answer all requests.

    :param read: returns the row for each address; it runs in a process of its own.
    """
    for line in sys.stdin:
        asked = json.loads(line)
        request = Request(bytes.fromhex(asked["section"]), asked["address"], asked["pcs"])
        print(json.dumps(_answered(read, request)), flush=True)


def _answered(read: Callable[[Request], list[Any]], request: Request) -> dict[str, Any]:
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiving)
        # What the reader itself prints is not an answer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (request.seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        with os.fdopen(sending, "w") as answer:
            try:
                json.dump({"rows": read(request)}, answer)
            except RefusedError as error:
                json.dump({"refused": str(error)}, answer)
            except Exception:  # noqa: BLE001  # it is printed by the other process
                json.dump({"failed": traceback.format_exc()}, answer)
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as answer:
        text = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        return {"crashed": signal.Signals(-status).name if status < 0 else f"exit status {status}"}
    found: dict[str, Any] = json.loads(text)
    if "failed" in found:  # a bug of the program around the reader
        sys.exit(found["failed"])
    return found


def guarded(data: bytes) -> ctypes.Array[ctypes.c_char]:
    """Return a copy of bytes in front of a page that cannot be read: reading after them is a crash.

    The copy is aligned to 8 bytes, as sections are, so that up to 7 bytes after it can be read.
    """
    size = len(data) + -len(data) % 8
    pages = -(-max(size, 1) // mmap.PAGESIZE)
    area = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = pages * mmap.PAGESIZE - size
    area[start : start + len(data)] = data
    copy = (ctypes.c_char * len(data)).from_buffer(area, start)
    guard = ctypes.addressof(copy) + size
    if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(guard), mmap.PAGESIZE, _PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    return copy
