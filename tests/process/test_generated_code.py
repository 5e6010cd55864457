"""Code without a file and without unwind data, as run-time compilers generate it; a process without its main thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.command import NOWHERE, backtrace, functions
from tests.process.programs import compiled, core_of, running
from tests.waiting import runs, wait_until


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("generated.c", tmp_path_factory.mktemp("generated"))


INNER = ["say_and_wait", "??", "??"]
"""The functions from the one that waits to the first generated one."""


def test_frame_pointers_lead_through_generated_code(program: Path) -> None:
    with running(program) as process:
        done = backtrace("--pid", str(process), "--json")
    assert done.status == 0, done.errors
    (frames,) = done.threads.values()
    found = functions(frames)
    start = found.index("say_and_wait")
    assert found[start:][:3] == INNER
    assert found[start + 3] in ("run_generated", "main")
    assert found[-1] == "_start"
    assert [frame["unwinder"] for frame in frames[start + 1 :][:2]] == ["guess", "guess"]


def test_generated_code_in_a_core_file(program: Path, tmp_path: Path) -> None:
    """The flags of the core file's segments give the memory that could be executed."""
    core, _ = core_of(program, "say_and_wait", tmp_path / "core")
    done = backtrace("--core", core, "--json", *NOWHERE)
    assert done.status == 0, done.errors
    (frames,) = done.threads.values()
    found = functions(frames)
    assert found[:3] == INNER
    assert "main" in found[3:5]
    assert found[-1] == "_start"
    assert [frame["unwinder"] for frame in frames[1:3]] == ["guess", "guess"]


def test_process_whose_main_thread_has_ended(program: Path) -> None:
    with running(program, "thread") as process:
        wait_until(lambda: not runs(process), "the main thread has ended")
        done = backtrace("--pid", str(process), "--json")
    assert done.status == 0, done.errors
    (frames,) = done.threads.values()
    found = functions(frames)
    assert found[found.index("say_and_wait") :][:3] == INNER
