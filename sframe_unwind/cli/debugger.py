"""The debuggers, and starting one with its plugin loaded, in the place of this process."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from sframe_unwind.cli.status import CANNOT, complain
from sframe_unwind.errors import FileError


class Debugger(NamedTuple):
    """A debugger that there is a plugin for."""

    name: str
    """Its command."""
    variable: str
    """Environment variable that names another one."""
    plugin: str
    """Path of the script, from the folder that this package lies in."""
    option: str
    """What carries out a line before the program is loaded."""
    line: str
    """The debugger's command that loads the script, with ``{}`` for its path."""

    def load_line(self) -> str:
        """Return the command that loads the plugin, as the init file takes it.

        :raises FileError: the plugin is not installed.
        """
        script = Path(__file__).resolve().parents[2] / self.plugin
        if not script.is_file():
            raise FileError(f"{script}: the plugin is not installed")
        return self.line.replace("{}", str(script))


GDB = Debugger("gdb", "SFRAME_UNWIND_GDB", "gdb_plugin/sframe_gdb.py", "-iex", "source {}")
LLDB = Debugger(
    "lldb",
    "SFRAME_UNWIND_LLDB",
    "lldb_plugin/sframe_lldb.py",
    "--one-line-before-file",
    'command script import "{}"',
)


def start(debugger: Debugger, arguments: list[str]) -> int:
    """Become a debugger; return an exit status only where that cannot be.

    :param arguments: the user's own, which follow those that load the plugin.
    :raises FileError: the plugin is not installed.
    """
    name, variable = debugger.name, debugger.variable
    load = [debugger.option, debugger.load_line()]
    wanted = os.environ.get(variable)
    program = _find(wanted or name)
    if program is None:
        remedy = f"{variable} names it" if wanted else f"pip install 'sframe-unwind[{name}]' brings one"
        complain(f"{wanted or name}: no such debugger ({remedy})")
        return CANNOT
    sys.stdout.flush()
    # Python ignores these, and what is ignored stays so in the debugger and in the programs that it starts.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(program, [program, *load, *arguments])
    except OSError as error:
        complain(f"{program}: cannot start: {error.strerror or error}")
    return CANNOT


def _find(command: str) -> str | None:
    """Return the path of a program: of this virtual environment, activated or not, else of PATH."""
    of_environment = None
    if sys.prefix != sys.base_prefix:
        of_environment = shutil.which(command, path=str(Path(sys.prefix) / "bin"))
    return of_environment or shutil.which(command)
