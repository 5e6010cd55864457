"""Scripts that read the whole stack at each of many stops."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import lldb

from tests.lldb.inside.program import SECONDS, Program

_LONG = 1.0
"""The seconds of a wait that a user notices; shorter ones are meant to fail while another thread works."""


def stepping(debugger: lldb.SBDebugger, program: dict[str, Any], stops: int) -> dict[str, Any]:
    """Step by instructions with commands; return the number of frames at each stop, and the vain waits.

    Selecting a thread makes LLDB's event thread show it at the same time.  There are fewer stops if the program ends.
    """
    inside = Program(debugger)
    with inside.started(program):
        return _step(inside, stops)


def watched(debugger: lldb.SBDebugger, program: dict[str, Any], stops: int) -> dict[str, Any]:
    """Do the same while another thread, like a client's, reads the stack all the time."""
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
    """Return the messages at stops when the target's lock is held while LLDB's event thread asks for frames."""
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


def switched_off(debugger: lldb.SBDebugger, program: dict[str, Any]) -> list[str]:
    """Return the messages when a command sets mode ``off`` while another thread of LLDB asks for frames."""
    inside = Program(debugger)
    plugin = importlib.import_module("sframe_lldb")
    session = _engine().session
    with inside.started(program), contextlib.redirect_stderr(io.StringIO()) as said:
        provider = next(value for name, value in vars(plugin).items() if name.startswith("SFrameFrameProvider"))
        modules = session.modules

        def switch_off(process: lldb.SBProcess) -> Any:
            session.settings = session.settings._replace(mode="off")
            return modules(process)

        session.modules = switch_off
        provider.applies_to_thread(inside.thread)
        session.modules = modules
    return said.getvalue().splitlines()


def late(debugger: lldb.SBDebugger, program: dict[str, Any]) -> list[str]:
    """Return the messages for two libraries that were loaded just before a stop."""
    inside = Program(debugger)
    new_modules = _engine().new_modules
    with inside.started(program), contextlib.redirect_stderr(io.StringIO()) as said:
        for _ in range(2):
            new_modules._fit_late(inside.target, inside.target.GetProcess().GetStopID())
    return said.getvalue().splitlines()


def registering(debugger: lldb.SBDebugger, program: dict[str, Any]) -> int:
    """Return how many frames there are after a command has set the mode while the plugin registers the provider."""
    inside = Program(debugger)
    stop_hooks = _engine().hooks
    add, begun, goes_on = stop_hooks.add, threading.Event(), threading.Event()

    def slow(target: lldb.SBTarget) -> None:
        begun.set()
        goes_on.wait(SECONDS)
        add(target)

    stop_hooks.add = slow
    inside.run(f'target create "{program["executable"]}"')
    assert begun.wait(SECONDS)
    inside.run(f"breakpoint set -n {program['place']}")
    process = inside.target.LaunchSimple([], None, None)
    threading.Timer(_LONG, goes_on.set).start()
    inside.run("sframe mode always")
    count = len(_names(inside.thread))
    process.Detach()
    return count


def beside_commands(debugger: lldb.SBDebugger, program: dict[str, Any], times: int) -> list[str]:
    """Return the threads that a command shows while another thread enables and disables the plugin's hook."""
    inside = Program(debugger)
    stop_hooks = _engine().hooks
    interpreter = debugger.GetCommandInterpreter()
    shown = set()
    with inside.started(program):
        stop_hooks.add(inside.target)

        def keep() -> None:
            for _ in range(times):
                stop_hooks.need(inside.target)
                stop_hooks.need_no_more(inside.target)

        keeper = threading.Thread(target=keep)
        keeper.start()
        while keeper.is_alive():
            result = lldb.SBCommandReturnObject()
            interpreter.HandleCommand("thread info", result)
            shown.add((result.GetOutput() or "").partition(":")[0])
        keeper.join()
    return sorted(shown)


def several_debuggers(debugger: lldb.SBDebugger, plugin_file: str, count: int) -> int:
    """Return how many Python threads are added by creating and destroying some debuggers with the plugin."""
    inside = Program(debugger)
    inside.run("sframe status")
    before = threading.active_count()
    for _ in range(count):
        other = lldb.SBDebugger.Create(False)
        Program(other).run(f'command script import "{plugin_file}"')
        lldb.SBDebugger.Destroy(other)
    return threading.active_count() - before


def hooked(debugger: lldb.SBDebugger, program: dict[str, Any], stops: int) -> list[int]:
    """Return how many frames a stop-hook in Python sees at each stop."""
    inside = Program(debugger)
    with inside.started(program):
        inside.run(f"script import {__name__}")
        inside.run(f"target stop-hook add -P {__name__}.LookingHook")
        for _ in range(stops):
            inside.run("thread step-inst")
    return _seen


def called(debugger: lldb.SBDebugger, program: dict[str, Any]) -> list[int]:
    """Return how many frames callbacks of breakpoints see, at the returns of a function to each of its callers."""
    inside = Program(debugger)
    with inside.started(program):
        inside.run(f"script import {__name__}")
        for frame in list(inside.thread)[1:]:
            point = inside.target.BreakpointCreateByAddress(frame.GetPC())
            point.SetScriptCallbackFunction(f"{__name__}.at_breakpoint")
        _seen.append(len(_names(inside.thread)))
        inside.run("process continue")
    return _seen


def at_once(debugger: lldb.SBDebugger, program: dict[str, Any], plugin_file: str, stops: int) -> list[list[int]]:
    """Return how many frames two debuggers see that step at the same time, each in its own thread."""
    pair = [Program(debugger), Program(lldb.SBDebugger.Create(False))]
    if plugin_file:
        pair[1].run(f'command script import "{plugin_file}"')
    counts: list[list[int]] = [[], []]
    with pair[0].started(program), pair[1].started(program):

        def step(number: int) -> None:
            thread = pair[number].thread
            for _ in range(stops):
                thread.StepInstruction(False)
                counts[number].append(len(_names(thread)))

        clients = [threading.Thread(target=step, args=(number,)) for number in range(2)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    return counts


_seen: list[int] = []


class LookingHook:
    """A stop-hook that reads all frames, as a user's hook can."""

    def __init__(self, target: lldb.SBTarget, extra_args: Any, internal_dict: dict[str, Any]) -> None:
        pass

    def handle_stop(self, exe_ctx: lldb.SBExecutionContext, stream: lldb.SBStream) -> bool:
        """Read the frames, and stay stopped."""
        _seen.append(len(_names(exe_ctx.GetThread())))
        return True


def at_breakpoint(frame: lldb.SBFrame, location: lldb.SBBreakpointLocation, internal_dict: dict[str, Any]) -> bool:
    """Read all frames, and continue; LLDB calls this in the thread that handles the process."""
    _seen.append(len(_names(frame.GetThread())))
    return False


def _step(inside: Program, stops: int) -> dict[str, Any]:
    counts = []
    with _vain_waits() as vain:
        for _ in range(stops):
            if inside.target.GetProcess().GetState() != lldb.eStateStopped:
                break
            inside.run("thread select 1")
            inside.run("thread step-inst")
            counts.append(len(_names(inside.thread)))
    return {"counts": counts, "vain": len(vain)}


@contextlib.contextmanager
def _vain_waits() -> Iterator[list[float]]:
    """Yield a list that gets the seconds of each long wait of the plugin for a lock that it did not get."""
    users = [module for name, module in sys.modules.items() if name.startswith("lldb_plugin.")]
    lock = importlib.import_module("lldb_plugin.interface.lock")
    acquire, vain = lock.acquire, []

    def watched_acquire(mutex: lldb.SBMutex, seconds: float) -> bool:
        got: bool = acquire(mutex, seconds)
        if not got and seconds >= _LONG:
            vain.append(seconds)
        return got

    users = [module for module in users if getattr(module, "acquire", None) is acquire]
    assert len(users) > 1
    for module in users:
        module.acquire = watched_acquire  # type: ignore[attr-defined]
    try:
        yield vain
    finally:
        for module in users:
            module.acquire = acquire  # type: ignore[attr-defined]


def _engine() -> Any:
    """Return the part of the plugin that unwinds."""
    return importlib.import_module("lldb_plugin.plugin").the_plugin().engine()


def _names(thread: lldb.SBThread) -> list[str]:
    return [frame.GetFunctionName() or "" for frame in thread]
