"""Runs in LLDB with a kernel: stops it many times and writes each stack to a file, like `stops_in_gdb`."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lldb

from tests.hanging import HANG

SHORTEST, LONGEST = 0.005, 0.05
"""Seconds that the kernel runs until a stop at a random time."""
PROBLEM_STATE = 1 << 48
"""The bit of the PSW's mask on s390x that is set in user space."""
PATIENCE = HANG
"""Seconds after which a function counts as not reached."""
AGAIN = 1.0
"""Seconds after which the kernel is interrupted again: LLDB drops an interrupt that comes before the kernel runs."""


class Stops:
    """The stops of one session.

    :param debugger: a debugger connected to the kernel, which is stopped.
    """

    def __init__(self, debugger: lldb.SBDebugger) -> None:
        debugger.SetAsync(False)
        self._debugger = debugger
        self._target = debugger.GetSelectedTarget()
        self._process = self._target.GetProcess()

    def at_random(self, number: int, dice: random.Random) -> Iterator[dict[str, object]]:
        """Stop at random times until the kernel's code was interrupted often enough."""
        in_kernel = 0
        while in_kernel < number:
            self._run(dice.uniform(SHORTEST, LONGEST))
            for thread in list(self._process):
                self._process.SetSelectedThread(thread)
                found = self._stop("")
                in_kernel += bool(found["in_kernel"])
                yield found

    def at_function(self, function: str, number: int) -> Iterator[dict[str, object]]:
        """Stop in a function."""
        for _ in range(number):
            self._command(f"breakpoint set -H -n {function} -N here")
            self._run(PATIENCE)
            at_breakpoint = [one for one in self._process if one.GetStopReason() == lldb.eStopReasonBreakpoint]
            self._command("breakpoint delete here")
            if not at_breakpoint:
                return
            self._process.SetSelectedThread(at_breakpoint[0])
            yield self._stop(function)

    def _run(self, seconds: float) -> None:
        """Let the kernel run until a breakpoint, or for some seconds."""
        stopped = threading.Event()

        def interrupt() -> None:
            patience = seconds
            while not stopped.wait(patience):
                self._process.SendAsyncInterrupt()
                patience = AGAIN

        thread = threading.Thread(target=interrupt)
        thread.start()
        error = self._process.Continue()
        stopped.set()
        thread.join()
        if error.Fail():
            raise RuntimeError(f"the kernel does not go on: {error.GetCString()}")
        last = time.monotonic() + PATIENCE
        while self._process.GetState() != lldb.eStateStopped:
            if time.monotonic() > last:
                state = lldb.SBDebugger.StateAsCString(self._process.GetState())
                raise TimeoutError(f"the kernel did not stop: LLDB says {state}")
            time.sleep(0.01)

    def _stop(self, where: str) -> dict[str, object]:
        """Describe the stop."""
        text = self._command("sframe bt")
        found = {"where": where, "in_kernel": self._in_kernel(), "sframe": text}
        found["bt"] = [one.GetFunctionName() or "?" for one in self._frames() if not one.IsInlined()]
        found["with_plugin"] = self._with_variables()
        self._command("sframe mode off")
        found["alone"] = self._with_variables()
        self._command("sframe mode always")
        return found

    def _in_kernel(self) -> bool:
        """Return whether the processor executes code of the kernel."""
        frame = self._frames()[0]
        if self._target.GetTriple().startswith("s390x"):
            return not frame.FindRegister("pswm").GetValueAsUnsigned() & PROBLEM_STATE
        return bool(frame.GetPC() >> 63)

    def _frames(self) -> list[Any]:
        return list(self._process.GetSelectedThread())

    def _with_variables(self) -> list[str]:
        """Return name, place and variables of each frame."""
        found = []
        for frame in self._frames():
            line = frame.GetLineEntry()
            names = [f"{frame.GetFunctionName()} {frame.GetPC():#x} {line.GetLine()}"]
            values = frame.GetVariables(True, True, False, True)
            found.append("\n".join([*names, *(f"{one.GetName()} = {one.GetValue()}" for one in values)]))
        return found

    def _command(self, line: str) -> str:
        result = lldb.SBCommandReturnObject()
        # Otherwise the thread would be that of the command that imports this file.
        context = lldb.SBExecutionContext(self._process.GetSelectedThread())
        self._debugger.GetCommandInterpreter().HandleCommand(line, context, result, False)
        return str(result.GetOutput())


def __lldb_init_module(debugger: lldb.SBDebugger, _: dict[str, object]) -> None:
    """Execute the plan."""
    plan = json.loads(Path(os.environ["STOPS"]).read_text(encoding="utf-8"))
    stops, dice = Stops(debugger), random.Random(plan["seed"])
    with Path(plan["result"]).open("a", encoding="utf-8") as result:
        for function, number in plan["functions"].items():
            for found in stops.at_function(function, number):
                print(json.dumps(found), file=result, flush=True)
        for found in stops.at_random(plan["random"], dice):
            print(json.dumps(found), file=result, flush=True)
