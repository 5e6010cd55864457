"""The four debuggers, and the commands that start each for a session."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sframe_unwind.machine.personality import lldb_settings
from tests.gdb import driver as gdb
from tests.lldb import debuggers as lldb
from tools.binutils import ToolchainUnavailable
from tools.debuginfod import NO_SERVER

INSIDE = Path(__file__).resolve().parent / "inside"
WITHOUT = "none"
"""The mode of a session without the plugin."""
MODES = ("off", "auto", "fallback", "always")
STRICT = "strict"
"""Mode `always` with strict: SFrame unwinds every frame that it covers."""


@dataclass(frozen=True)
class Debugger:
    """One debugger."""

    name: str
    is_gdb: bool
    key: str
    """The name of the debugger in `tests.gdb.driver.find` or `tests.lldb.debuggers.find`."""
    crashes_by_itself: bool = False
    """At a terminal, its event thread and its commands make the same frames at the same time.  On a busy machine, LLDB
    22.1 crashed for this reason in 2 of 120 sessions without the plugin, and in 4 of 180 with it."""

    @property
    def has_adapter(self) -> bool:
        """Return whether it implements the Debug Adapter Protocol: GDB since version 14."""
        return self.name == "gdb18"

    def command(self, executable: Path, mode: str, abi: str = "amd64", more: Sequence[str] = ()) -> list[str]:
        """Return the command that starts it on a program, with the plugin in a mode unless that is `WITHOUT`.

        :param more: additional words of the command line.
        :raises ToolchainUnavailable: the debugger is not installed.
        """
        return self._gdb(executable, mode, abi, more) if self.is_gdb else self._lldb(executable, mode, more)

    def _gdb(self, executable: Path, mode: str, abi: str, more: Sequence[str]) -> list[str]:
        found = gdb.find(self.key, abi)
        if found is None:
            raise ToolchainUnavailable(f"{self.name} for {abi} is not installed")
        settings = [*gdb.SETTINGS, gdb.WITHOUT_DEBUG_FILES, "set startup-with-shell on", "set max-completions 10"]
        plugin = [f"source {gdb.PLUGIN}", *_modes("set sframe mode {}", "set sframe strict on", mode)]
        started = [*settings, *(plugin if mode != WITHOUT else [])]
        command = [found.path, "-q", "-nx", *(part for line in started for part in ("-iex", line))]
        return [*command, "-ex", f"source {INSIDE / 'gdb_state.py'}", *more, str(executable)]

    def _lldb(self, executable: Path, mode: str, more: Sequence[str]) -> list[str]:
        path = lldb.path_of(self.key)
        if not path.exists():
            raise ToolchainUnavailable(f"{self.name} is not installed: {path} is not there")
        started = [part for line in self.lldb_startup(executable, mode) for part in ("-o", line)]
        return [str(path), "--no-lldbinit", "--no-use-colors", *started, *more]

    def lldb_startup(self, executable: Path, mode: str) -> list[str]:
        """Return the first commands for an LLDB."""
        settings = [
            "settings set interpreter.prompt-on-quit false",
            "settings set target.preload-symbols true",
            "settings set symbols.enable-external-lookup false",
            *lldb_settings(),
        ]
        plugin = [f'command script import "{lldb.PLUGIN}"', *_modes("sframe mode {}", "sframe strict on", mode)]
        state = f'command script import "{INSIDE / "lldb_state.py"}"'
        return [*settings, *(plugin if mode != WITHOUT else []), f'target create "{executable}"', state]

    def first_lines(self, terminal: bool) -> tuple[str, ...]:
        """Return the lines to type before all others."""
        # Otherwise a command that runs the program ends at once.  LLDB resets the setting when it starts reading input.
        return () if self.is_gdb or terminal else ("script lldb.debugger.SetAsync(False)",)

    def at_terminal(self, seed: int) -> bool:
        """Return whether a session is typed at a terminal, where LLDB prints from another thread, without waiting."""
        return not self.is_gdb and seed % 2 == 1

    def environment(self) -> dict[str, str]:
        """Return the environment of the debugger and the program: the same in each run, on each machine."""
        path = os.environ.get("PATH", os.defpath)
        # LLDB makes a folder in its home, for root even if the home does not exist; below a device it cannot.
        home = {"HOME": "/dev/null", "SHELL": "/bin/sh", "DEBUGINFOD_URLS": NO_SERVER}
        return {"PATH": path, "LC_ALL": gdb.LOCALE, "TERM": "dumb", **home}


def _modes(mode_command: str, strict_command: str, mode: str) -> Sequence[str]:
    if mode == STRICT:
        return (mode_command.format("always"), strict_command)
    return (mode_command.format(mode),)


OTHER = "other"
"""Name of the debugger that SFRAME_TEST_GDB or SFRAME_TEST_LLDB gives, such as the next release or the last one."""

DEBUGGERS = {
    debugger.name: debugger
    for debugger in (
        Debugger("gdb13", True, "system"),
        Debugger("gdb18", True, "pypi"),
        Debugger("lldb22", False, "22.1", crashes_by_itself=True),
        Debugger("lldb23", False, "newest"),
        *([Debugger("other-gdb", True, OTHER)] if "SFRAME_TEST_GDB" in os.environ else []),
        *([Debugger("other-lldb", False, OTHER)] if "SFRAME_TEST_LLDB" in os.environ else []),
    )
}
