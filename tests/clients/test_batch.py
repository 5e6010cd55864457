"""Scripts that attach to a process and print all stacks, like gstack."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.homes import gdb_environment
from tests.gdb.conftest import debugger as debugger
from tests.gdb.driver import Debugger
from tests.hanging import HANG
from tests.samples.build import COMMON_FLAGS, toolchain
from tests.transcripts import Transcript
from tests.waiting import wait_until

BACKTRACES = ("thread apply all bt", "thread apply all bt full", "thread apply all -q bt -frame-arguments all")
THREADS = 4


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def sleeping(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Yield the id of a process whose threads wait."""
    executable = tmp_path_factory.mktemp("sleeping") / "sleeping"
    source = Path(__file__).with_name("sleeping.c")
    command = ["gcc", *COMMON_FLAGS, f"-B{toolchain('amd64', 3)}/", request.param, "-pthread", str(source)]
    subprocess.run([*command, "-o", str(executable)], check=True, timeout=HANG)
    process = subprocess.Popen([str(executable)], stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: _waiting(process.pid) >= THREADS, "all threads wait")
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _waiting(process: int) -> int:
    """Return how many threads of a process are in the system call in which the program waits."""
    calls = [path.read_text().split()[0] for path in Path(f"/proc/{process}/task").glob("*/syscall")]
    return calls.count("34")  # pause, of AMD64


def stacks(debugger: Debugger, home: Path, plugin: bool, process: int) -> list[str]:
    """Return GDB's output when it attaches, shows all stacks, and detaches."""
    commands = [part for command in BACKTRACES for part in ("-ex", command)]
    command = [debugger.path, "-q", "-batch", "-p", str(process), *commands]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=gdb_environment(home, plugin),
        timeout=HANG,
        check=False,
    )
    Transcript(command).write(done.stdout)
    done.check_returncode()
    return [line for line in done.stdout.decode().splitlines() if not re.match(r"\[New LWP", line)]


def test_all_stacks_of_a_process_are_printed_as_without_the_plugin(
    sleeping: int, debugger: Debugger, tmp_path: Path
) -> None:
    without = stacks(debugger, tmp_path / "without", False, sleeping)
    assert sum(" down (" in line for line in without) >= 3 * (1 + 4 + 7 + 6)
    assert stacks(debugger, tmp_path / "plugin_", True, sleeping) == without
