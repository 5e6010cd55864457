"""A script for LLDB: commands that write the state of the program, and wait until it stops."""

from __future__ import annotations

import json
import os
import re
import struct
import threading
import time
from pathlib import Path
from typing import Any

import lldb

_FRAMES = 60
_REGISTERS = ("rbx", "rbp", "r12", "r13", "r14", "r15", "rip", "rsp", "x19", "x20", "x29", "pc", "sp")
_BREAKPOINT = re.compile(r"(one-shot )?breakpoint( site)? [0-9].*")
_SECONDS = 600.0
_SETTLED = 0.04
"""Seconds for which a program must be stopped.  At a breakpoint with a condition, it stops only for a moment."""
_NAP = 0.005
_GONE = (lldb.eStateInvalid, lldb.eStateExited, lldb.eStateDetached, lldb.eStateUnloaded, lldb.eStateConnected)
_CORES = ("elf-core", "minidump")
"""LLDB's names of what makes a process from a core file."""


def _value(value: Any) -> str:
    error = value.GetError()
    if error.Fail():
        return f"error: {error.GetCString()}"
    return f"{value.GetValue()} {value.GetSummary()}"


def _variables(frame: Any) -> list[list[str]]:
    """Return arguments and locals of a frame with their values; for structures, the first level."""
    found = []
    for value in frame.GetVariables(True, True, False, True):
        found.append([value.GetName() or "", value.GetTypeName() or "", _value(value)])
        for index in range(min(value.GetNumChildren(), 4)):
            if not value.GetType().IsPointerType():
                child = value.GetChildAtIndex(index)
                found.append([f"{value.GetName()}.{child.GetName()}", child.GetTypeName() or "", _value(child)])
    return found


def _registers(frame: Any) -> list[list[str]]:
    found = []
    for name in _REGISTERS:
        register = frame.FindRegister(name)
        if register.IsValid():
            found.append([name, register.GetValue() or "none"])
    return found


def _without_identities(value: Any, identities: set[int]) -> Any:
    """Return variables and registers with the ids of process and threads replaced, which differ in each run."""
    words = {str(number) for number in identities} | {f"0x{number:016x}" for number in identities}
    return [[*entry[:-1], "ID" if entry[-1].partition(" ")[0] in words else entry[-1]] for entry in value]


def state(debugger: Any, full: bool, level: int) -> dict[str, Any]:
    """Return the state of the program; with `full` its whole stack, and the variables of frame 0 and another one.

    :param level: the other frame; -1: include the variables of every frame.
    """
    process = debugger.GetSelectedTarget().GetProcess()
    if not process.IsValid() or process.GetState() in _GONE:
        return {"live": False, "exit": process.GetExitStatus() if process.IsValid() else None}
    if process.GetPluginName() in _CORES:
        # Without such a command, a script can be earlier than the plugin (docs/lldb.md).
        debugger.GetCommandInterpreter().HandleCommand("thread backtrace -c 1", lldb.SBCommandReturnObject())
    told: dict[str, Any] = {"live": True, "process": lldb.SBDebugger.StateAsCString(process.GetState())}
    thread = process.GetSelectedThread()
    told["thread"] = thread.GetIndexID()
    told["threads"] = sorted(each.GetIndexID() for each in process)
    # Of several breakpoints at one place, LLDB names varying ones if one of them is deleted when it is hit.
    told["stop"] = _BREAKPOINT.sub("breakpoint", thread.GetStopDescription(300))
    told["selected"] = thread.GetSelectedFrame().GetFrameID()
    frames = []
    held = []
    for index in range(_FRAMES if full else 1):
        frame = thread.GetFrameAtIndex(index)
        if not frame.IsValid():
            break
        kind = "inline" if frame.IsInlined() else "artificial" if frame.IsArtificial() else ""
        frames.append([frame.GetFunctionName(), frame.GetPC(), kind, frame.GetLineEntry().GetLine(), frame.GetSP()])
        held.append(frame)
    told["frames"] = frames
    if full and held:
        if level < 0:
            told["every"] = [[each.GetFunctionName(), _variables(each)] for each in held]
        outer = held[min(max(level, 0), len(held) - 1)]
        identities = {process.GetProcessID(), *(each.GetThreadID() for each in process)}
        told["locals"] = _without_identities(_variables(held[0]), identities)
        told["outer"] = _without_identities(_variables(outer), identities)
        told["registers"] = _without_identities(_registers(outer), identities)
    return told


def drive_state(debugger: Any, command: str, result: Any, internal_dict: dict[str, Any]) -> None:
    """Add a line to the file of states, and print a mark.  Words: number, full, level."""
    number, full, level = map(int, command.split())
    with Path(os.environ["DRIVE_STATES"]).open("a", encoding="utf-8") as file:
        others = {"others": internal_dict["others"]} if "others" in internal_dict else {}
        told = {"number": number, **state(debugger, bool(full), level), **others, "heard": _heard()}
        file.write(json.dumps(told) + "\n")
    os.write(1, f"\n@@state {number}@@\n".encode())


def random_bytes(process: int) -> int:
    """Return the address of the 16 random bytes that the kernel gave a process (AT_RANDOM of its auxiliary vector).

    The C library makes its stack canary and its pointer guard from them, which appear in uninitialised variables.
    """
    vector = Path(f"/proc/{process}/auxv").read_bytes()
    return int(dict(struct.iter_unpack("=QQ", vector))[25])


def drive_fix(debugger: Any, command: str, result: Any, internal_dict: dict[str, Any]) -> None:
    """Give a starting program the same random bytes each time."""
    process = debugger.GetSelectedTarget().GetProcess()
    process.WriteMemory(random_bytes(process.GetProcessID()), bytes(range(1, 17)), lldb.SBError())


def drive_wait(debugger: Any, command: str, result: Any, internal_dict: dict[str, Any]) -> None:
    """Wait until the program is not running, and print a mark.  Word: number."""
    _settle(debugger)
    os.write(1, f"\n@@ready {int(command)}@@\n".encode())


def _settle(debugger: Any) -> None:
    """Wait until the program is not running, and LLDB has decided that it stays so.

    While a script of a breakpoint decides whether to stop, the process is "stopped", on a busy machine for long.
    """
    deadline = time.monotonic() + _SECONDS
    since = None
    while time.monotonic() < deadline:
        stop = _stop(debugger)
        if stop is None:
            since = None
        elif since is None:
            since = time.monotonic()
        elif time.monotonic() - since >= _SETTLED:
            _handle_events(debugger, deadline)
            if _stop(debugger) == stop:
                return
            since = None
        time.sleep(_NAP)


_MARK = lldb.SBBroadcaster("drive")
"""The sender of events.  It is kept: LLDB's event thread still uses it when an event has left the queue."""


def _handle_events(debugger: Any, deadline: float) -> None:
    """Wait until LLDB's event thread, which executes such scripts, has handled all events that there are."""
    listener = debugger.GetListener()
    listener.StartListeningForEvents(_MARK, 1)
    _MARK.BroadcastEventByType(1, False)
    while time.monotonic() < deadline and listener.PeekAtNextEventForBroadcaster(_MARK, lldb.SBEvent()):
        time.sleep(_NAP)
    listener.StopListeningForEvents(_MARK, 1)


def _stop(debugger: Any) -> int | None:
    """Return LLDB's number of the stop of the selected process, or 0 if there is no process; ``None``: it runs."""
    process = debugger.GetSelectedTarget().GetProcess()
    if not process.IsValid() or process.GetState() in _GONE:
        return 0
    return int(process.GetStopID()) if _stands(process) else None


def _stands(process: Any) -> bool:
    """Return whether a process is stopped.

    Its state alone is not sufficient: it stays "stopped" until LLDB's other thread has learned that it runs.  Threads
    have no data from the moment in which they are resumed.
    """
    if process.GetState() not in (lldb.eStateStopped, lldb.eStateCrashed):
        return False
    return bool(process.GetSelectedThread().GetStopReason() != lldb.eStopReasonInvalid)


def called_by(frame: Any, location: Any, arguments: Any, internal_dict: dict[str, Any]) -> bool:
    """Return whether to stop at a breakpoint: if the caller has a given name, as in users' scripts."""
    wanted = arguments.GetValueForKey("caller").GetStringValue(100)
    caller = frame.GetThread().GetFrameAtIndex(frame.GetFrameID() + 1)
    return (caller.GetFunctionName() or "").startswith(wanted)


_listeners: list[Any] = []


def drive_listener(debugger: Any, command: str, result: Any, internal_dict: dict[str, Any]) -> None:
    """Listen to the modules of the selected target, like other people's scripts; states then have what was heard."""
    if not _listeners:
        _listeners.append(lldb.SBListener("drive"))
    bits = lldb.SBTarget.eBroadcastBitModulesLoaded | lldb.SBTarget.eBroadcastBitModulesUnloaded
    debugger.GetSelectedTarget().GetBroadcaster().AddListener(_listeners[0], bits)


def _heard() -> list[str]:
    """Return the modules of the events since the last time."""
    found, event = [], lldb.SBEvent()
    while _listeners and _listeners[0].GetNextEvent(event):
        for index in range(lldb.SBTarget.GetNumModulesFromEvent(event)):
            found.append(str(lldb.SBTarget.GetModuleAtIndexFromEvent(index, event).GetFileSpec().GetFilename()))
    return sorted(found)  # several threads load modules


def drive_serve(debugger: Any, command: str, result: Any, internal_dict: dict[str, Any]) -> None:
    """Execute commands from standard input, like a script, until an empty line.  Each line is a list in JSON.

    Word: `script`: wait for each command; `async-script`: execute them in another thread, while LLDB does not wait;
    `two`: a second debugger does the same.
    """
    debuggers = [debugger]
    if command == "two":
        debuggers.append(lldb.SBDebugger.Create(False))
        for line in json.loads(Path("startup.json").read_text(encoding="utf-8")):
            debuggers[1].HandleCommand(line)
    for each in debuggers:
        each.SetAsync(command == "async-script")
    if command != "async-script":
        _serve(debuggers)
        return
    thread = threading.Thread(target=_serve, args=(debuggers,))
    thread.start()
    thread.join()
    debugger.SetAsync(False)


def _line() -> bytes:
    """Return a line of standard input without its end; the rest is left to LLDB."""
    line = b""
    while (read := os.read(0, 1)) not in (b"\n", b""):
        line += read
    return line


def _serve(debuggers: list[Any]) -> None:
    while line := _line():
        *commands, asked = json.loads(line)
        for each in debuggers:
            for command in commands:
                _do(each, command)
                _look_around(each)
        others = [state(each, True, 1) for each in debuggers[1:]]
        drive_state(debuggers[0], asked.partition(" ")[2], None, {"others": others})


def _do(debugger: Any, command: str) -> None:
    """Execute a command like a script, in the selected frame, and print its output."""
    target = debugger.GetSelectedTarget()
    frame = target.GetProcess().GetSelectedThread().GetSelectedFrame()
    context = lldb.SBExecutionContext(frame) if frame.IsValid() else lldb.SBExecutionContext(target)
    said = lldb.SBCommandReturnObject()
    debugger.GetCommandInterpreter().HandleCommand(command, context, said)
    if debugger.GetAsync():
        _settle(debugger)
    os.write(1, f"{said.GetOutput() or ''}{said.GetError() or ''}".encode())


def _look_around(debugger: Any) -> None:
    """Request all frames of all threads, in the middle of commands, like scripts."""
    for thread in debugger.GetSelectedTarget().GetProcess():
        for frame in thread:
            frame.GetFunctionName()


def __lldb_init_module(debugger: Any, internal_dict: dict[str, Any]) -> None:
    for name in ("drive_listener", "drive_state", "drive_wait", "drive_fix", "drive_serve"):
        debugger.HandleCommand(f"command script add -o -f {__name__}.{name} {name.replace('_', '-')}")
