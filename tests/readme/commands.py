"""The commands and programs that the README shows, and a folder in which they work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
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
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROCESS = "1234"
"""The process id that the README shows."""
SECONDS = HANG
_FINDINGS = ("verify", "lint")
"""Commands with exit status 1 where they find something."""


class Block(NamedTuple):
    """A block of the README."""

    language: str
    lines: tuple[str, ...]


def blocks() -> list[Block]:
    """Return the README's blocks of commands and programs; of a session with output, only what was typed."""
    found = []
    for language, text in _BLOCK.findall((CHECKOUT / "README.md").read_text(encoding="utf-8")):
        lines = text.splitlines()
        if language == "console":
            language, lines = "sh", [line[2:] for line in lines if line.startswith("$ ")]
        found.append(Block(language, tuple(lines)))
    return found


def shell_commands() -> list[str]:
    """Return the README's commands for a shell."""
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
    """Run a command as the README shows it, and return what it prints."""
    line = line.replace(PROCESS, env[PROCESS])
    command = ["bash", "-c", line]
    done = subprocess.run(
        command, cwd=folder, env=env, input="quit\n", capture_output=True, text=True, timeout=SECONDS, check=False
    )
    highest = 1 if any(f"sframe-unwind {name} " in line for name in _FINDINGS) or "addresses.txt" in line else 0
    assert done.returncode <= highest, f"{line}: {done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout
