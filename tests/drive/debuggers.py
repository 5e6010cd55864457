"""The four debuggers, and how each is started for a session."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.gdb import driver as gdb
from tests.lldb import debuggers as lldb
from tools.debuginfod import NO_SERVER

INSIDE = Path(__file__).resolve().parent / "inside"
WITHOUT = "none"
"""The mode of a session without the plugin."""
MODES = ("off", "fallback", "always")
STRICT = "strict"
"""Mode `always`, with SFrame alone where it covers a frame."""


@dataclass(frozen=True)
class Debugger:
    """One debugger."""

    name: str
    is_gdb: bool
    key: str
    """What `tests.gdb.driver.find` or `tests.lldb.debuggers.find` calls it."""
    crashes_by_itself: bool = False
    """At a terminal, its event thread and its commands make the same frames at the same time.  On a busy machine,
    LLDB 22.1 crashed so in 2 of 120 sessions without the plugin, and in 4 of 180 with it."""

    @property
    def has_adapter(self) -> bool:
        """Whether it speaks the Debug Adapter Protocol by itself: GDB from version 14 on."""
        return self.name == "gdb18"

    def command(self, executable: Path, mode: str, abi: str = "amd64", more: Sequence[str] = ()) -> list[str]:
        """The command that starts it on a program, with the plugin in a mode unless that is `WITHOUT`.

        :param more: words of the command line besides.
        :raises FileNotFoundError: the debugger is not there.
        """
        return self._gdb(executable, mode, abi, more) if self.is_gdb else self._lldb(executable, mode, more)

    def _gdb(self, executable: Path, mode: str, abi: str, more: Sequence[str]) -> list[str]:
        found = gdb.find(self.key, abi)
        if found is None:
            raise FileNotFoundError(f"no {self.name} for {abi}")
        settings = [*gdb.SETTINGS, gdb.WITHOUT_DEBUG_FILES, "set startup-with-shell on", "set max-completions 10"]
        plugin = [f"source {gdb.PLUGIN}", *_modes("set sframe mode {}", "set sframe strict on", mode)]
        started = [*settings, *(plugin if mode != WITHOUT else [])]
        command = [found.path, "-q", "-nx", *(part for line in started for part in ("-iex", line))]
        return [*command, "-ex", f"source {INSIDE / 'gdb_state.py'}", *more, str(executable)]

    def _lldb(self, executable: Path, mode: str, more: Sequence[str]) -> list[str]:
        path = lldb.path_of(self.key)
        if not path.exists():
            raise FileNotFoundError(f"no {self.name}: {path} is not there")
        started = [part for line in self.lldb_startup(executable, mode) for part in ("-o", line)]
        return [str(path), "--no-lldbinit", "--no-use-colors", *started, *more]

    def lldb_startup(self, executable: Path, mode: str) -> list[str]:
        """What an LLDB is told first of all."""
        settings = [
            "settings set interpreter.prompt-on-quit false",
            "settings set target.preload-symbols true",
            "settings set symbols.enable-external-lookup false",
        ]
        plugin = [f'command script import "{lldb.PLUGIN}"', *_modes("sframe mode {}", "sframe strict on", mode)]
        state = f'command script import "{INSIDE / "lldb_state.py"}"'
        return [*settings, *(plugin if mode != WITHOUT else []), f'target create "{executable}"', state]

    def first_lines(self, terminal: bool) -> tuple[str, ...]:
        """What has to be typed before anything else."""
        # Otherwise a command that lets the program run is over at once.  LLDB forgets it when it begins to read.
        return () if self.is_gdb or terminal else ("script lldb.debugger.SetAsync(False)",)

    def at_terminal(self, seed: int) -> bool:
        """Whether a session is typed at a terminal: LLDB prints from another thread there, and waits for nobody."""
        return not self.is_gdb and seed % 2 == 1

    def environment(self) -> dict[str, str]:
        """The variables that it, and through it the program, is given: the same in each run, on each machine."""
        path = os.environ.get("PATH", os.defpath)
        # LLDB makes a folder in its home, and for root also the home; below a device nobody can.
        home = {"HOME": "/dev/null", "SHELL": "/bin/sh", "DEBUGINFOD_URLS": NO_SERVER}
        return {"PATH": path, "LC_ALL": "C", "TERM": "dumb", **home}


def _modes(mode_command: str, strict_command: str, mode: str) -> Sequence[str]:
    if mode == STRICT:
        return (mode_command.format("always"), strict_command)
    return (mode_command.format(mode),)


OTHER = "other"
"""What a debugger is called that SFRAME_TEST_GDB or SFRAME_TEST_LLDB names: the next release, or the last one."""

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
