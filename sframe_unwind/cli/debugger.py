"""Replaces this process by a debugger with its plugin loaded."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Callable

from sframe_unwind.cli.status import CANNOT, complain
from sframe_unwind.errors import PACKAGES, FileError
from sframe_unwind.machine.personality import lldb_settings
from sframe_unwind.named_tuple import NamedTuple

_INSTALLED = "plugins"
"""The folder of the plugins in an installed package; in a checkout, they are beside the package."""
_DEBIAN_PACKAGES = "/usr/lib/python3/dist-packages"
"""The folder of Debian's Python packages.

LLDB's package needs `six` from there.  In an activated virtual environment, Python does not look for packages there.
"""


class Debugger(NamedTuple):
    """A debugger with a plugin."""

    name: str
    """Name of the program."""
    variable: str
    """Environment variable that names another program."""
    plugin: str
    """Path of the plugin's script, from the folder of the plugins."""
    option: str
    """Option that runs a command before the program is loaded."""
    line: str
    """Command that loads the script; ``{}`` stands for its path."""
    python_package: str = ""
    """The place of its Python package, relative to the folder that contains ``bin``; empty: it needs no help."""
    settings: Callable[[], tuple[str, ...]] = tuple
    """Returns the commands that it needs on this machine before the program is loaded."""

    def load_line(self) -> str:
        """Return the command that loads the plugin, in the form for the init file.

        :raises FileError: the plugin is not installed.
        """
        package = Path(__file__).resolve().parents[1]
        scripts = [folder / self.plugin for folder in (package.parent, package / _INSTALLED)]
        script = next(filter(Path.is_file, scripts), None)
        if script is None:
            raise FileError(f"{scripts[-1]}: the plugin is not installed")
        return self.line.replace("{}", str(script))


GDB = Debugger("gdb", "SFRAME_UNWIND_GDB", "gdb_plugin/sframe_gdb.py", "-iex", "source {}")
LLDB = Debugger(
    name="lldb",
    variable="SFRAME_UNWIND_LLDB",
    plugin="lldb_plugin/sframe_lldb.py",
    option="--one-line-before-file",
    line='command script import "{}"',
    # Packages of Debian look in /usr/lib/local/lib, where there is nothing.
    python_package="lib/python3*/dist-packages/lldb/__init__.py",
    settings=lldb_settings,
)


def start(debugger: Debugger, arguments: list[str]) -> int:
    """Replace this process by a debugger.  The function returns only if that fails, with the exit status.

    :param arguments: the user's arguments for the debugger.
    :raises FileError: the plugin is not installed.
    """
    load = [word for line in (*debugger.settings(), debugger.load_line()) for word in (debugger.option, line)]
    program = found(debugger)
    if program is None:
        complain(not_found(debugger))
        return CANNOT
    sys.stdout.flush()
    # Python ignores these signals, and the debugger and its programs would inherit this.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execve(program, [program, *load, *arguments], environment(debugger, program))
    except OSError as error:
        complain(f"{program}: cannot start: {error.strerror or error}")
    return CANNOT


def environment(debugger: Debugger, program: str) -> dict[str, str]:
    """Return the environment for a debugger, in which Python looks for the debugger's own package first."""
    variables = dict(os.environ)
    pattern = debugger.python_package
    for package in sorted(Path(program).resolve().parents[1].glob(pattern))[:1] if pattern else []:
        others = variables.get("PYTHONPATH")
        folders = [str(package.parents[1]), *([others] if others else []), _DEBIAN_PACKAGES]
        variables["PYTHONPATH"] = os.pathsep.join(folders)
    return variables


def found(debugger: Debugger) -> str | None:
    """Return the path of the debugger that :func:`start` starts; ``None``: there is none."""
    return _find(os.environ.get(debugger.variable) or debugger.name)


def not_found(debugger: Debugger) -> str:
    """Return the message that there is no such debugger, and what helps."""
    wanted = os.environ.get(debugger.variable)
    remedy = f"{debugger.variable} names it" if wanted else f"pip install {PACKAGES[debugger.name]} installs it"
    return f"{wanted or debugger.name}: no such debugger ({remedy})"


def _find(command: str) -> str | None:
    """Return the path of a program in this virtual environment (even if it is not activated), or in PATH."""
    of_environment = None
    if sys.prefix != sys.base_prefix:
        of_environment = shutil.which(command, path=str(Path(sys.prefix) / "bin"))
    return of_environment or shutil.which(command)
