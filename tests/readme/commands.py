"""The commands and programs that the README and the guides show, and a folder in which they work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.elf.objects import ONE, compile_object, tools_for
from tests.hanging import HANG
from tests.missing import toolchain_needed
from tests.process.programs import core_of, running
from tests.samples.build import COMMON_FLAGS, build
from tools.debuginfod import NO_SERVER

CHECKOUT = Path(__file__).resolve().parents[2]
_SOURCE = Path(__file__).with_name("program.c")
PAGES = ("README.md", *(f"docs/{name}.md" for name in ("install", "gdb", "dump", "verify", "lint")))
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROCESS = "1234"
"""The process id that the README shows."""
_LEFT_OUT = "..."
"""A line of output in place of any number of lines."""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
"""Addresses and numbers differ between compilers."""
SECONDS = HANG
_FINDINGS = ("verify", "lint")
"""Commands with exit status 1 where they find something."""


class Block(NamedTuple):
    """A block of a page."""

    language: str
    lines: tuple[str, ...]
    """What is typed, or a program; in a block of the language ``text``, what the block before it prints."""
    output: tuple[str, ...] = ()
    """The lines that the page shows after what is typed."""


def blocks() -> list[Block]:
    """Return the blocks of commands and programs of the README and the guides."""
    found = []
    for page in PAGES:
        for language, text in _BLOCK.findall((CHECKOUT / page).read_text(encoding="utf-8")):
            lines = text.splitlines()
            if language == "console":
                typed = tuple(line[2:] for line in lines if line.startswith("$ "))
                found.append(Block("sh", typed, tuple(line for line in lines if not line.startswith("$ "))))
            elif language == "text":
                found[-1] = found[-1]._replace(output=tuple(lines))
            else:
                found.append(Block(language, tuple(lines)))
    return found


def first_missing(shown: Iterable[str], printed: str) -> str | None:
    """Return the first of the lines of a page that a program does not print, or not in this order; ``None``: none.

    Numbers and blanks do not count.  Lines that follow each other on the page do so in the output, unless ``...``
    stands between them.
    """
    rest, may_skip = [_bare(line) for line in printed.splitlines()], True
    for line in shown:
        if line.strip() == _LEFT_OUT:
            may_skip = True
            continue
        if _bare(line) not in (rest if may_skip else rest[:1]):
            return line
        rest, may_skip = rest[rest.index(_bare(line)) + 1 :], False
    return None


def _bare(line: str) -> str:
    return re.sub(r"\s", "", _NUMBER.sub("N", line))


def shell_commands() -> list[str]:
    """Return the commands for a shell."""
    return [line for block in blocks() if block.language == "sh" for line in block.lines]


def prepare(folder: Path) -> None:
    """Make the files that the commands name."""
    with toolchain_needed():
        tools = tools_for("amd64", 3)
        plt = build("plt")
    flags = [*COMMON_FLAGS, "-O2", "-Wl,--build-id", f"-B{tools}/"]
    subprocess.run(["gcc", *flags, str(_SOURCE), "-o", str(folder / "program")], check=True, timeout=SECONDS)
    core, _ = core_of(folder / "program", "inner", folder / "cores")
    core.rename(folder / "core")
    shutil.copy(plt, folder)
    shutil.copy(plt.with_name("libshared.so"), folder)
    compile_object(tools, "amd64", ONE, folder / "module.ko")
    (folder / "addresses.txt").write_text("0x1000\nmain\n", encoding="ascii")


@contextmanager
def environment(folder: Path, programs: Path) -> Iterator[Mapping[str, str]]:
    """Yield the environment of a user with this home folder, while a process has the id that the README shows."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    with running(folder / "program", "wait") as process:
        own = {"PATH": f"{programs}:{kept['PATH']}", "HOME": str(folder), "DEBUGINFOD_URLS": NO_SERVER}
        yield {**kept, **own, PROCESS: str(process)}


def run_command(line: str, folder: Path, env: Mapping[str, str]) -> str:
    """Run a command as its page shows it, and return what it prints."""
    line = line.replace(PROCESS, env[PROCESS])
    command = ["bash", "-c", line]
    done = subprocess.run(
        command, cwd=folder, env=env, input="quit\n", capture_output=True, text=True, timeout=SECONDS, check=False
    )
    highest = 1 if any(f"sframe-unwind {name} " in line for name in _FINDINGS) or "addresses.txt" in line else 0
    assert done.returncode <= highest, f"{line}: {done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout
