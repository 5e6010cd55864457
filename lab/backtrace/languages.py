"""Compares `backtrace` with eu-stack and GDB on processes and cores of programs in many languages.

Prints a table: for each program, as a process and as a core, the number of threads and frames by each tool, in how many
threads the pcs of all frames are the same, and processor time and memory of each tool.  A language that is not
installed is left out, and named.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, NamedTuple

from tests.hanging import HANG

_PROGRAMS = Path(__file__).with_name("programs")
_FRAME = re.compile(r"^#\d+ +0x([0-9a-f]+)", re.MULTILINE)
_BY_GDB = """
import gdb
gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, pcs = gdb.newest_frame(), []
    while frame is not None:
        # A tail call left no frame; the pc of a frame after the outermost one is 0.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME) and frame.pc():
            pcs.append(frame.pc())
        try:
            frame = frame.older()
        except gdb.error:
            break
    print("STACK", thread.ptid[1] or thread.ptid[0], *pcs)
"""

Stacks = Mapping[int, Sequence[int]]
"""The pcs of the frames of each thread."""


class Program(NamedTuple):
    """A program that waits after it has printed ``ready``."""

    language: str
    run: Sequence[str]
    """The command; ``{made}`` stands for what :attr:`make` makes, ``{source}`` for a copy of the folder of sources."""
    make: Sequence[str] = ()
    """The command that compiles it, likewise; empty: nothing is compiled."""


class Seen(NamedTuple):
    """What a tool showed."""

    stacks: Stacks
    seconds: float
    """Processor time."""
    memory: int
    """Peak memory in KiB."""

    @property
    def frames(self) -> int:
        """Number of frames of all threads."""
        return sum(map(len, self.stacks.values()))


_THREADS = ("-pthread", "{source}/deep.c", "-o", "{made}")
_JAVA = ("javac", "-d", "{made}", "{source}/Deep.java")
PROGRAMS = (
    Program("C", ["{made}"], ["gcc", "-O2", *_THREADS]),
    Program("C, -O0, static", ["{made}"], ["gcc", "-static", *_THREADS]),
    Program("C++", ["{made}"], ["g++", "-O2", "-pthread", "{source}/deep.cpp", "-o", "{made}"]),
    Program("Rust", ["{made}"], ["rustc", "-O", "{source}/deep.rs", "-o", "{made}"]),
    Program("Go", ["{made}"], ["go", "build", "-o", "{made}", "{source}/deep.go"]),
    Program("OCaml", ["{made}"], ["ocamlopt", "{source}/deep.ml", "-o", "{made}"]),
    Program("OCaml, bytecode", ["{made}"], ["ocamlc", "-custom", "{source}/deep.ml", "-o", "{made}"]),
    Program("Erlang", ["escript", "{source}/deep.erl"]),
    Program("Guile (Scheme)", ["guile", "--no-auto-compile", "{source}/deep.scm"]),
    Program("Python", ["/usr/bin/python3", "{source}/deep.py"]),
    Program("Perl", ["perl", "{source}/deep.pl"]),
    Program("PHP", ["php", "{source}/deep.php"]),
    Program("Ruby", ["ruby", "{source}/deep.rb"]),
    Program("Lua", ["lua5.4", "{source}/deep.lua"]),
    Program("JavaScript (Node)", ["node", "{source}/deep.js"]),
    Program("Java", ["java", "-cp", "{made}", "Deep"], _JAVA),
    Program("Java, interpreted", ["java", "-Xint", "-cp", "{made}", "Deep"], _JAVA),
    Program("Tcl", ["tclsh", "{source}/deep.tcl"]),
    Program("shell (bash)", ["bash", "{source}/deep.sh"]),
    Program("SQL (SQLite)", ["sqlite3", ":memory:", ".shell echo ready; exec cat"]),
)


def main() -> None:
    """Print the table."""
    left_out = [one.language for one in PROGRAMS if shutil.which((one.make or one.run)[0]) is None]
    print("| program | | threads | frames: backtrace, eu-stack, GDB | equal stacks: eu-stack, GDB | seconds | MB |")
    print("|---|---|--:|---|---|---|---|")
    for program in PROGRAMS:
        if program.language not in left_out:
            for line in _lines(program):
                print(line, flush=True)
    if left_out:
        print(f"not installed: {', '.join(left_out)}")


def _lines(program: Program) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder, _waiting(program, Path(folder)) as process:
        core = f"{folder}/core.{process}"
        _run(["gdb", "-q", "-nx", "-batch", "-p", str(process), "-ex", f"generate-core-file {core}"])
        for what, ours, theirs, by_gdb in (
            ("process", ("--pid", str(process)), ("-p", str(process)), ("-p", str(process))),
            ("core", ("--core", core), ("--core", core), (f"/proc/{process}/exe", "-c", core)),
        ):
            mine = _seen([sys.executable, "-m", "sframe_unwind", "backtrace", "--json", *ours], _by_json)
            others = (
                _seen(["eu-stack", "-n", "0", *theirs], _by_elfutils),
                _seen(["gdb", "-q", "-nx", "-batch", *by_gdb, "-ex", f"python exec({_BY_GDB!r})"], _by_gdb),
            )
            yield _line(program.language, what, mine, others)


def _line(language: str, what: str, mine: Seen, others: Sequence[Seen]) -> str:
    every = (mine, *others)
    frames = ", ".join(f"{one.frames:,}" for one in every)
    equal = ", ".join(str(sum(mine.stacks.get(thread) == pcs for thread, pcs in one.stacks.items())) for one in others)
    seconds = ", ".join(f"{one.seconds:.2f}" for one in every)
    memory = ", ".join(f"{one.memory / 1024:.0f}" for one in every)
    return f"| {language} | {what} | {len(mine.stacks)} | {frames} | {equal} | {seconds} | {memory} |"


@contextmanager
def _waiting(program: Program, folder: Path) -> Iterator[int]:
    """Start a program; yield its process id when it waits."""
    source = shutil.copytree(_PROGRAMS, folder / "source")  # some compilers write files beside the source
    places = {"made": str(folder / "made"), "source": str(source)}
    if program.make:
        _run([word.format(**places) for word in program.make])
    command = [word.format(**places) for word in program.run]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"{program.language}: it ends before it waits")
            yield process.pid
        finally:
            process.kill()


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: exit status {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def _seen(command: Sequence[str], stacks: Callable[[str], Stacks]) -> Seen:
    """Run a tool; return what it showed, and what it took."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0  # it was waited for
        output.seek(0)
        found = output.read()
    return Seen(stacks(found), used.ru_utime + used.ru_stime, used.ru_maxrss)


def _by_json(text: str) -> Stacks:
    threads = json.loads(text)["threads"]
    return {int(one["id"]): [frame["pc"] for frame in one["frames"] if not frame["inlined"]] for one in threads}


def _by_elfutils(text: str) -> Stacks:
    threads = re.split(r"^TID (\d+):$", text, flags=re.MULTILINE)[1:]
    return {int(one): [int(pc, 16) for pc in _FRAME.findall(part)] for one, part in zip(threads[::2], threads[1::2])}


def _by_gdb(text: str) -> Stacks:
    lines = (line.split()[1:] for line in text.splitlines() if line.startswith("STACK "))
    return {int(thread): list(map(int, pcs)) for thread, *pcs in lines}


if __name__ == "__main__":
    main()
