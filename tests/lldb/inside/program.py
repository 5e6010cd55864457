"""Starts and stops a sample from inside LLDB, natively or under an emulator."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lldb

from tests.hanging import HANG
from tests.waiting import listens, wait_until

SECONDS = HANG


class CommandError(Exception):
    """A command of LLDB failed; the message is LLDB's."""


class Program:
    """A program in LLDB, with the commands that work on it."""

    def __init__(self, debugger: lldb.SBDebugger) -> None:
        self.debugger = debugger
        debugger.SetAsync(False)

    @property
    def target(self) -> lldb.SBTarget:
        """The selected target."""
        return self.debugger.GetSelectedTarget()

    @property
    def thread(self) -> lldb.SBThread:
        """The selected thread."""
        return self.target.GetProcess().GetSelectedThread()

    def attempt(self, command: str, frame: lldb.SBFrame | None = None) -> tuple[bool, str, str]:
        """Run a command; return whether it succeeded, its output and its error.

        :param frame: the frame for which it runs; ``None``: the selected one, if the process is stopped.
        """
        process = self.target.GetProcess()
        context = lldb.SBExecutionContext(self.target)
        if process.IsValid() and process.GetState() == lldb.eStateStopped:
            context = lldb.SBExecutionContext(frame or self.thread.GetSelectedFrame())
        result = lldb.SBCommandReturnObject()
        self.debugger.GetCommandInterpreter().HandleCommand(command, context, result)
        return bool(result.Succeeded()), result.GetOutput() or "", result.GetError() or ""

    def run(self, command: str) -> str:
        """Run a command that must succeed, and return its output."""
        succeeded, output, error = self.attempt(command)
        if not succeeded:
            raise CommandError(f"{command}: {error}")
        return output

    @contextmanager
    def started(self, program: dict[str, Any]) -> Iterator[None]:
        """Stop a program at its place; end it afterwards.

        Its target is kept: LLDB's event thread crashes on events of a process whose target was deleted immediately.

        :param program: in the form of `tests.lldb.programs.program`.
        """
        platform = "remote-linux" if program["emulator"] else "host"
        root = f" --sysroot {program['sysroot']}" if program["sysroot"] else ""
        self.run(f"platform select{root} {platform}")
        self.run(f'target create "{program["executable"]}"')
        self.run(f"breakpoint set -n {program['place']}")
        for setting in program.get("settings", ()):
            self.run(f"settings set {setting}")
        for signal in program["signals"]:
            self.run(f"process handle {signal} -n false -p true -s false")
        with self._process(program):
            yield

    @contextmanager
    def _process(self, program: dict[str, Any]) -> Iterator[None]:
        if not program["emulator"]:
            at_entry = "--stop-at-entry " if program.get("stop at entry") else ""
            arguments = " ".join(f'"{argument}"' for argument in program["arguments"])
            self.run(f"process launch {at_entry}-o /dev/null -- {arguments}")
            try:
                yield
            finally:
                self.target.GetProcess().Detach()  # it runs to its end; killing sometimes takes LLDB 5 seconds
            return
        # A port would have to be free, and the kernel takes milliseconds to write the table of listening ports.
        with tempfile.TemporaryDirectory() as folder:
            socket = Path(folder) / "socket"
            emulator, *options = program["emulator"]
            command = [emulator, "-g", str(socket), *options, program["executable"], *program["arguments"]]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                wait_until(lambda: listens(process.pid), f"{emulator} listens", SECONDS)
                self.run(f"process connect --plugin gdb-remote unix-connect://{socket}")
                if program.get("runs", True):
                    self.run("process continue")
                yield
            finally:
                process.kill()
                process.wait()
