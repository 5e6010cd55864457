"""Starting a debugger with its plugin loaded, in the place of this process."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from sframe_unwind.cli.status import CANNOT, complain


def start(name: str, variable: str, plugin: str, load: list[str], arguments: list[str]) -> int:
    """Become a debugger; return an exit status only where that cannot be.

    :param name: the debugger's command.
    :param variable: environment variable that names another one.
    :param plugin: path of the script, from the folder that this package lies in.
    :param load: arguments that load the script, with ``{}`` for its path.
    :param arguments: the user's own, which follow.
    """
    script = Path(__file__).resolve().parents[2] / plugin
    if not script.is_file():
        complain(f"{script}: the plugin is not installed")
        return CANNOT
    wanted = os.environ.get(variable)
    debugger = _find(wanted or name)
    if debugger is None:
        remedy = f"{variable} names it" if wanted else f"pip install 'sframe-unwind[{name}]' brings one"
        complain(f"{wanted or name}: no such debugger ({remedy})")
        return CANNOT
    command = [debugger, *(part.replace("{}", str(script)) for part in load), *arguments]
    sys.stdout.flush()
    # Python ignores these, and what is ignored stays so in the debugger and in the programs that it starts.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(debugger, command)
    except OSError as error:
        complain(f"{debugger}: cannot start: {error.strerror or error}")
    return CANNOT


def _find(command: str) -> str | None:
    """Return the path of a program: of this virtual environment, activated or not, else of PATH."""
    of_environment = None
    if sys.prefix != sys.base_prefix:
        of_environment = shutil.which(command, path=str(Path(sys.prefix) / "bin"))
    return of_environment or shutil.which(command)
