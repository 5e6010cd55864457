"""Makes the shells' completions and the manual page from the parsers of the command line.

    python -m tools.shell_files FOLDER

`pip install` puts them where shells and `man` look for them below the environment's prefix.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import shtab
from argparse_manpage.manpage import Manpage

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # when run or imported by its path
    sys.path.insert(0, str(ROOT))

from sframe_unwind import __version__, cli  # noqa: E402
from sframe_unwind.cli.status import STATUSES  # noqa: E402

PLACES = {
    "bash": f"share/bash-completion/completions/{cli.PROGRAM}",
    "zsh": f"share/zsh/site-functions/_{cli.PROGRAM}",
    "fish": f"share/fish/vendor_completions.d/{cli.PROGRAM}.fish",
}
"""Where each shell looks for completions, below a prefix."""
MANUAL = f"share/man/man1/{cli.PROGRAM}.1"
_COMPLETIONS = {
    **dict.fromkeys(("FILE", "CORE", "OUT", "ARGS"), shtab.FILE),
    "FOLDER": shtab.DIRECTORY,
}
"""The kind of completion for an argument, by its name in the help."""


_VARIABLES = {
    "SFRAME_UNWIND_GDB, SFRAME_UNWIND_LLDB": "the debugger that the commands gdb and lldb start",
    "SFRAME_UNWIND_TRACEBACK": "if set, an internal error is shown with its traceback",
    "DEBUGINFOD_URLS": "servers for --debuginfod, separated by spaces",
    "DEBUGINFOD_CACHE_PATH, XDG_CACHE_HOME": "where their files are kept",
    "DEBUGINFOD_TIMEOUT": "seconds for all downloads together",
    "DEBUGINFOD_MAXSIZE": "bytes of the largest file that is downloaded",
}
"""The meanings of the environment variables that commands read."""
_SEE_ALSO = (("gdb", 1), ("lldb", 1), ("readelf", 1), ("eu-stack", 1), ("perf", 1), ("proc", 5), ("ptrace", 2))


def shell_files() -> Iterator[tuple[str, str]]:
    """Yield path below a prefix and contents of each file."""
    parser = cli.parser()
    for action in _actions(parser):
        if action.metavar in _COMPLETIONS:
            action.complete = _COMPLETIONS[str(action.metavar)]  # type: ignore[attr-defined]  # shtab looks for it
    for shell, place in PLACES.items():
        yield place, shtab.complete(parser, shell)
    yield MANUAL, _manual(cli.parser())


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _manual(parser: argparse.ArgumentParser) -> str:
    page = Manpage(parser, format="single-commands-section")
    page.source, page.manual = f"{cli.PROGRAM} {__version__}", "User Commands"
    page.description = "inspect SFrame data, and unwind stacks with it"
    examples = "".join(module.EXAMPLES for module in cli.COMMANDS.values())
    lines = (line.strip().replace("\\", "\\e").replace("-", "\\-") for line in examples.splitlines())
    page.add_section("EXAMPLES", ">", ".nf\n" + "\n".join(lines) + "\n.fi")
    statuses = "".join(f".TP\n.B {status}\n{meaning}\n" for status, meaning in STATUSES.items())
    variables = "".join(f".TP\n.B {name}\n{meaning}\n" for name, meaning in _VARIABLES.items())
    page.add_section("EXIT STATUS", ">", _escaped(statuses))
    page.add_section("ENVIRONMENT", ">", _escaped(variables))
    page.add_section("SEE ALSO", ">", ", ".join(f"\\fB{name}\\fR({section})" for name, section in _SEE_ALSO))
    return str(page)


def _escaped(text: str) -> str:
    return text.replace("-", "\\-")


def write(folder: Path) -> list[str]:
    """Write the files below a folder; return their paths below it."""
    written = []
    for place, content in shell_files():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
        written.append(place)
    return written


if __name__ == "__main__":
    print("\n".join(write(Path(sys.argv[1]))))
