"""A script for GDB: commands for actions that cannot be typed, and one that writes the state of the program."""

from __future__ import annotations

import functools
import json
import os
import struct
from pathlib import Path
from typing import Any

import gdb

_FRAMES = 60
"""Number of innermost frames that are compared in a runaway recursion."""
_KINDS = {gdb.INLINE_FRAME: "inline", gdb.TAILCALL_FRAME: "tailcall", gdb.SIGTRAMP_FRAME: "signal"}
_REGISTERS = {
    "i386:x86-64": ("rbx", "rbp", "r12", "r13", "r14", "r15", "rip", "rsp"),
    "aarch64": ("x19", "x20", "x21", "x28", "x29", "pc", "sp"),
    "s390:64-bit": ("r6", "r7", "r11", "r13", "r15", "f8", "pswa"),
}
"""Callee-saved registers, pc and the stack pointers."""


def _register(frame: gdb.Frame, name: str) -> str:
    try:
        return str(frame.read_register(name).format_string(format="x"))
    except (gdb.error, ValueError) as error:
        return f"error: {error}"


def _frame(frame: gdb.Frame, stack_pointer: str) -> list[Any]:
    return [
        frame.name(),
        frame.pc(),
        _KINDS.get(frame.type(), ""),
        frame.find_sal().line,
        _register(frame, stack_pointer),
    ]


def _value(frame: gdb.Frame, symbol: gdb.Symbol) -> str:
    try:
        return str(frame.read_var(symbol).format_string(max_elements=4, styling=False))
    except (gdb.error, ValueError, RuntimeError) as error:
        return f"error: {error}"


def _variables(frame: gdb.Frame) -> list[list[str]]:
    """Return arguments and locals of a frame with their values."""
    try:
        block = frame.block()
    except RuntimeError:
        return []
    found = []
    while block is not None:
        for symbol in block:
            fixed = symbol.addr_class in (gdb.SYMBOL_LOC_STATIC, gdb.SYMBOL_LOC_CONST, gdb.SYMBOL_LOC_UNRESOLVED)
            if symbol.is_argument or (symbol.is_variable and not fixed):
                found.append([symbol.name, str(symbol.type), _value(frame, symbol)])
        if block.function is not None:
            break
        block = block.superblock
    return found


def _without_identities(value: list[list[str]], identities: set[int]) -> list[list[str]]:
    """Return variables and registers with the ids of process and threads replaced, which differ in each run."""
    words = {text for number in identities for text in (str(number), f"{number:#x}")}
    return [[*entry[:-1], "ID" if entry[-1] in words else entry[-1]] for entry in value]


def random_bytes(process: int) -> int:
    """Return the address of the 16 random bytes that the kernel gave a process (AT_RANDOM of its auxiliary vector).

    The C library makes its stack canary and its pointer guard from them, which appear in uninitialised variables.
    """
    vector = Path(f"/proc/{process}/auxv").read_bytes()
    return int(dict(struct.iter_unpack("=QQ", vector))[25])


def state(full: bool, level: int) -> dict[str, Any]:
    """Return the state of the program; with `full` its whole stack, and the variables of frame 0 and another one.

    :param level: the other frame; -1: include the variables of every frame.
    """
    inferior = gdb.selected_inferior()
    told: dict[str, Any] = {"live": bool(inferior.pid)}
    if not inferior.pid:
        return told
    thread = gdb.selected_thread()
    if thread is None:
        return {**told, "thread": None}
    told["thread"] = thread.num
    told["threads"] = sorted(each.num for each in inferior.threads())
    try:
        frame: gdb.Frame | None = gdb.newest_frame()
        told["selected"] = gdb.selected_frame().level()
        assert frame is not None
        architecture = frame.architecture().name()
        registers = _REGISTERS.get(architecture, ("pc", "sp"))
        stack_pointer = {"i386:x86-64": "rsp", "s390:64-bit": "r15"}.get(architecture, "sp")
        frames: list[list[Any]] = []
        held = []
        while frame is not None and len(frames) < (_FRAMES if full else 1):
            frames.append(_frame(frame, stack_pointer))
            held.append(frame)
            frame = frame.older()
        told["frames"] = frames
        if full:
            told["end"] = gdb.frame_stop_reason_string(held[-1].unwind_stop_reason())
            if level < 0:
                told["every"] = [[each.name(), _variables(each)] for each in held]
            outer = held[min(max(level, 0), len(held) - 1)]
            identities = {inferior.pid, *(number for each in inferior.threads() for number in each.ptid)} - {0, 1}
            told["locals"] = _without_identities(_variables(held[0]), identities)
            told["outer"] = _without_identities(_variables(outer), identities)
            values = [[name, _register(outer, name)] for name in registers]
            told["registers"] = _without_identities(values, identities)
    except gdb.error as error:
        told["error"] = str(error)
    return told


class State(gdb.Command):  # type: ignore[misc]  # GDB has no types
    """Write the state of the program.
    Usage: drive-state NUMBER FULL LEVEL
    """

    def __init__(self) -> None:
        super().__init__("drive-state", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Add a line to the file of states, and print a mark."""
        number, full, level = map(int, argument.split())
        with Path(os.environ["DRIVE_STATES"]).open("a", encoding="utf-8") as file:
            heard = _heard.copy()
            _heard.clear()
            file.write(json.dumps({"number": number, **state(bool(full), level), "heard": heard}) + "\n")
        gdb.write(f"\n@@state {number}@@\n")
        gdb.flush()


class Fix(gdb.Command):  # type: ignore[misc]  # GDB has no types
    """Give a starting program the same random bytes each time.
    Usage: drive-fix
    """

    def __init__(self) -> None:
        super().__init__("drive-fix", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Overwrite the bytes that the kernel gave it."""
        process = gdb.selected_inferior()
        if not process.pid:
            raise gdb.GdbError("no process")
        process.write_memory(random_bytes(process.pid), bytes(range(1, 17)))


class Callers(gdb.Breakpoint):  # type: ignore[misc]  # GDB has no types
    """A breakpoint that examines the caller, like people's scripts."""

    def __init__(self, place: str, wanted: str, hits: int) -> None:
        super().__init__(place)
        self._wanted = wanted
        self._hits = hits

    def stop(self) -> bool:
        """Stop at the last of the wanted calls by the function."""
        caller = gdb.newest_frame().older()
        while caller is not None and caller.type() == gdb.INLINE_FRAME:
            caller = caller.older()
        if caller is not None and caller.name() == self._wanted:
            self._hits -= 1
        return self._hits <= 0


class BreakCallers(gdb.Command):  # type: ignore[misc]  # GDB has no types
    """Set a breakpoint whose condition in Python looks at the caller.
    Usage: drive-break PLACE CALLER HITS
    """

    def __init__(self) -> None:
        super().__init__("drive-break", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Set it."""
        place, caller, hits = gdb.string_to_argv(argument)
        Callers(place, caller, int(hits))


def _line() -> bytes:
    """Return a line of standard input without its end; the rest is left to GDB."""
    line = b""
    while (read := os.read(0, 1)) not in (b"\n", b""):
        line += read
    return line


class Serve(gdb.Command):  # type: ignore[misc]  # GDB has no types
    """Execute commands from standard input, like a script, until an empty line.  Each line is a list in JSON.
    Usage: drive-serve
    """

    def __init__(self) -> None:
        super().__init__("drive-serve", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Print the output of each."""
        while line := _line():
            for command in json.loads(line):
                try:
                    shown = gdb.execute(command, False, True)
                except gdb.error as error:
                    shown = f"{error}\n"
                gdb.write(shown or "")
            gdb.flush()


_EVENTS = (
    *("cont", "stop", "exited", "new_objfile", "free_objfile", "clear_objfiles", "new_inferior", "new_thread"),
    *("memory_changed", "register_changed", "inferior_call", "breakpoint_created", "breakpoint_deleted"),
    *("breakpoint_modified", "before_prompt", "executable_changed", "new_progspace", "free_progspace"),
)
_heard: list[str] = []


class Listener(gdb.Command):  # type: ignore[misc]  # GDB has no types
    """Listen to events, like other people's scripts; the states then have what was heard.
    Usage: drive-listener
    """

    def __init__(self) -> None:
        super().__init__("drive-listener", gdb.COMMAND_USER)
        self._listens = False

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Listen, from the first time on."""
        for name in () if self._listens else _EVENTS:
            registry = getattr(gdb.events, name, None)
            if registry is not None:
                registry.connect(functools.partial(self._hear, name))
        self._listens = True

    @staticmethod
    def _hear(name: str, event: Any = None) -> None:
        file = getattr(event, "new_objfile", getattr(event, "objfile", None))
        _heard.append(f"{name} {type(event).__name__} {Path(file.filename).name if file is not None else ''}")


class Prompt(gdb.Command):  # type: ignore[misc]  # GDB has no types
    """Show the selected frame in the prompt, as some people do.
    Usage: drive-prompt
    """

    def __init__(self) -> None:
        super().__init__("drive-prompt", gdb.COMMAND_USER)

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Do so from now on."""
        gdb.prompt_hook = self._prompt

    @staticmethod
    def _prompt(current: str) -> str | None:
        try:
            frame = gdb.selected_frame()
        except gdb.error:
            return None
        return f"[{frame.level()} {frame.name()}] (gdb) "


State()
Fix()
BreakCallers()
Serve()
Listener()
Prompt()
