"""Scripts that look at the whole stack at each of many stops."""

from __future__ import annotations

import contextlib
import importlib
import io
import threading
import time
from typing import Any

import lldb

from tests.lldb.inside.program import Program


def stepping(debugger: lldb.SBDebugger, program: dict[str, Any], stops: int) -> dict[str, Any]:
    """Step by instructions with commands: how many frames there are at each stop, and the longest look at them.

    Selecting a thread makes LLDB's event thread show it at the same time.
    """
    inside = Program(debugger)
    with inside.started(program):
        return _step(inside, stops)


def watched(debugger: lldb.SBDebugger, program: dict[str, Any], stops: int) -> dict[str, Any]:
    """The same while another thread, as a client has them, looks at the stack all the time."""
    inside = Program(debugger)
    done = threading.Event()
    with inside.started(program):
        thread = inside.thread

        def look() -> None:
            while not done.is_set():
                _names(thread)
                time.sleep(0.001)

        client = threading.Thread(target=look)
        client.start()
        try:
            return _step(inside, stops)
        finally:
            done.set()
            client.join()


def left(debugger: lldb.SBDebugger, program: dict[str, Any], stops: int) -> list[str]:
    """What is said at stops where the lock on the target is held while LLDB's event thread asks for frames."""
    inside = Program(debugger)
    plugin = importlib.import_module("sframe_lldb")
    inside.run("sframe strict on")
    with inside.started(program), contextlib.redirect_stderr(io.StringIO()) as said:
        hook = plugin.SFrameStopHook(inside.target, None, {})
        provider = next(value for name, value in vars(plugin).items() if name.startswith("SFrameFrameProvider"))
        for _ in range(stops):
            inside.run("thread step-inst")
            mutex = inside.target.GetAPIMutex()
            asker = threading.Thread(target=provider.applies_to_thread, args=(inside.thread,))
            mutex.lock()
            try:
                asker.start()
                asker.join()
            finally:
                mutex.unlock()
            hook.handle_stop(lldb.SBExecutionContext(inside.thread), None)
        hook.handle_stop(lldb.SBExecutionContext(inside.thread), None)
    return said.getvalue().splitlines()


def several_debuggers(debugger: lldb.SBDebugger, plugin_file: str, count: int) -> int:
    """How many threads of Python's there are more after making and destroying some debuggers with the plugin."""
    inside = Program(debugger)
    inside.run("sframe status")
    before = threading.active_count()
    for _ in range(count):
        other = lldb.SBDebugger.Create(False)
        Program(other).run(f'command script import "{plugin_file}"')
        lldb.SBDebugger.Destroy(other)
    return threading.active_count() - before


def _step(inside: Program, stops: int) -> dict[str, Any]:
    counts, slowest = [], 0.0
    for _ in range(stops):
        started = time.monotonic()
        inside.run("thread select 1")
        inside.run("thread step-inst")
        counts.append(len(_names(inside.thread)))
        slowest = max(slowest, time.monotonic() - started)
    return {"counts": counts, "slowest": slowest}


def _names(thread: lldb.SBThread) -> list[str]:
    return [frame.GetFunctionName() or "" for frame in thread]
