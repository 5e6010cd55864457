"""Stops the threads of a process and reads their registers, with ``ptrace`` through the C library.

Threads are stopped by PTRACE_SEIZE and PTRACE_INTERRUPT (Linux 3.4), which send no signal.  If this process ends for
any reason, the kernel detaches the threads and they continue.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import time

from sframe_unwind.errors import ProcessError

NT_PRSTATUS, NT_FPREGSET = 1, 2
"""Numbers of the register sets, as in core files."""

_DETACH, _GETREGSET, _SEIZE, _INTERRUPT = 17, 0x4204, 0x4206, 0x4207
_EVENT_STOP = 128
_WALL = 0x40000000
_LARGEST_SET = 4096
PATIENCE = 2.0
"""Seconds to wait for a thread to stop."""
_ASK_AGAIN = 0.01
"""Seconds to wait for the signal that a thread has stopped; the kernel does not send it to processes that ignore it."""

_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_SCOPES = {
    "1": "which permits it to parents of the process and to root",
    "2": "which permits it to root",
    "3": "which permits it to nobody",
}
"""The permissions of each setting of the Yama security module (``Documentation/admin-guide/LSM/Yama.rst`` of Linux)."""


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Stopped:
    """A context manager that stops the threads of one process.  At its end, they continue.

    :param process: id of the process.
    :param thread: id of the only thread to stop; ``None``: all threads.
    """

    def __init__(self, process: int, thread: int | None = None) -> None:
        self._process = process
        self._only = thread
        self._signals: dict[int, int] = {}
        """The signal to deliver to each seized thread when it continues; one may have arrived just before the stop."""
        self.threads: list[int] = []
        """Ids of the stopped threads."""

    def __enter__(self) -> Stopped:
        """Stop the threads.

        :raises ProcessError: ``ptrace`` is not permitted.
        """
        tried: set[int] = set()
        try:
            while new := [thread for thread in self._thread_ids() if thread not in tried]:
                tried.update(new)
                seized = [thread for thread in new if self._seize(thread)]
                self.threads += [thread for thread in seized if self._wait(thread)]
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._release()

    def register_set(self, thread: int, kind: int) -> bytes:
        """Return a register set of a stopped thread, in the format of the kernel.

        :param thread: id of the thread.
        :param kind: one of the ``NT_`` constants.
        :raises ProcessError: the registers cannot be read.
        """
        buffer = ctypes.create_string_buffer(_LARGEST_SET)
        vector = _Vector(ctypes.addressof(buffer), _LARGEST_SET)
        error = _ptrace(_GETREGSET, thread, kind, ctypes.addressof(vector))
        if error:
            raise ProcessError(f"thread {thread}: registers cannot be read: {os.strerror(error)}")
        return buffer.raw[: vector.length]

    def _thread_ids(self) -> list[int]:
        return thread_ids(self._process) if self._only is None else [self._only]

    def _seize(self, thread: int) -> bool:
        """Ask a thread to stop; return ``False`` if it has ended.

        :raises ProcessError: ``ptrace`` is not permitted.
        """
        self._signals[thread] = 0
        error = _ptrace(_SEIZE, thread, 0, 0)
        if not error:
            return not _ptrace(_INTERRUPT, thread, 0, 0)
        del self._signals[thread]
        if error == errno.ESRCH or has_ended(self._process, thread):
            return False
        raise ProcessError(f"process {self._process}: cannot be stopped: {_why(self._process, error)}")

    def _wait(self, thread: int) -> bool:
        """Wait for a thread to stop; return whether it did so in time."""
        deadline = time.monotonic() + PATIENCE
        # While the signal is blocked it stays pending, so none is missed between the two calls of the loop.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        try:
            while (left := deadline - time.monotonic()) > 0:
                found, status = os.waitpid(thread, os.WNOHANG | _WALL)
                if found:
                    if os.WIFSTOPPED(status) and status >> 16 != _EVENT_STOP:
                        self._signals[thread] = os.WSTOPSIG(status)
                    return os.WIFSTOPPED(status)
                signal.sigtimedwait({signal.SIGCHLD}, min(left, _ASK_AGAIN))
        except ChildProcessError:
            pass
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return False

    def _release(self) -> None:
        while self._signals:
            thread, number = self._signals.popitem()
            _ptrace(_DETACH, thread, 0, number)


def thread_ids(process: int) -> list[int]:
    """Return the ids of the threads of a process; none if it has ended."""
    try:
        return sorted(int(name) for name in os.listdir(f"/proc/{process}/task"))  # noqa: PTH208  # fast
    except OSError:
        return []


def has_ended(process: int, thread: int) -> bool:
    """Return whether a thread has ended, including zombies."""
    return (field(process, thread, "State") or "X")[0] in "XZ"


def status(process: int, thread: int) -> dict[str, str]:
    """Return the fields of ``/proc/PID/task/TID/status`` by name; empty: there is no such thread."""
    lines = _status(process, thread).decode("utf-8", "replace").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def field(process: int, thread: int, name: str) -> str:
    """Return a field of ``/proc/PID/task/TID/status``; empty: there is no such thread or field.

    It takes half the time of :func:`status`, and a process of a thousand threads needs two fields of each.
    """
    text = b"\n" + _status(process, thread)
    line = text.partition(f"\n{name}:".encode())[2].partition(b"\n")[0]
    return line.decode("utf-8", "replace").strip()


def _status(process: int, thread: int) -> bytes:
    try:
        with open(f"/proc/{process}/task/{thread}/status", "rb", buffering=0) as stream:  # noqa: PTH123
            return stream.read()
    except OSError:
        return b""


def _why(process: int, error: int) -> str:
    if error == errno.EPERM:
        tracer = field(process, process, "TracerPid")
        if tracer not in ("", "0"):
            return f"process {tracer} is debugging it"
        return not_permitted(process)
    return os.strerror(error)


def not_permitted(process: int) -> str:
    """Return why a process may not be inspected."""
    try:
        with open(_SCOPE, encoding="ascii") as stream:  # noqa: PTH123  # pathlib takes 4 ms to import
            scope = stream.read().strip()
        is_own = os.stat(f"/proc/{process}").st_uid == os.geteuid()  # noqa: PTH116
    except OSError:
        return "not permitted"
    meaning = _SCOPES.get(scope)
    # For processes of other users, the setting is not the reason.
    return f"not permitted: kernel.yama.ptrace_scope is {scope}, {meaning}" if is_own and meaning else "not permitted"


def _ptrace(request: int, thread: int, address: int, data: int) -> int:
    """Call ``ptrace``; return 0 or the error number."""
    return 0 if _libc_ptrace(request, thread, address, data) != -1 else ctypes.get_errno()


_libc_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
_libc_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc_ptrace.restype = ctypes.c_long
