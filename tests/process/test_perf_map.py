"""Names of run-time code from the file that compilers write for perf, and limits of what is shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.process import ptrace
from tests.hanging import HANG
from tests.process.command import NOWHERE, backtrace, functions, only_line, unprivileged
from tests.process.programs import compiled, running


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program of `perf_map.c`, and return its path."""
    return compiled("perf_map.c", tmp_path_factory.mktemp("perf_map"), "-fno-omit-frame-pointer")


def test_names_and_limit(program: Path) -> None:
    with running(program) as process:
        path = Path(f"/tmp/perf-{process}.map")
        try:
            done = backtrace("--pid", str(process), "--json", *NOWHERE)
            (stack,) = done.threads.values()
            names = functions(stack)
            assert names[names.index("wait_here") :][:3] == ["wait_here", "made at run time", "main"]
            (shown,) = backtrace("--pid", str(process), "--json", "-n", "2", *NOWHERE).threads.values()
            assert shown == stack[:2]
            text = backtrace("--pid", str(process), "-n", "2", *NOWHERE).output
            assert text.splitlines()[-1] == f"end: {len(stack) - 2} more frames (-n 2)"
            assert backtrace("--pid", str(process), "-n", "1000", *NOWHERE).output.endswith("end: outermost frame\n")
            if os.geteuid() == 0:
                os.chown(path, 12345, 12345)
                (stack,) = backtrace("--pid", str(process), "--json", *NOWHERE).threads.values()
                assert "made at run time" not in functions(stack)
        finally:
            path.unlink()


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    """Any user can put a FIFO there; to open it would mean to wait for a writer."""
    (tmp_path / "tmp").mkdir()
    os.mkfifo(tmp_path / "tmp" / f"perf-{os.getpid()}.map")
    name = f"PerfMap({os.getpid()}, {str(tmp_path)!r}).name(1)"
    program = f"from sframe_unwind.process.perf_map import PerfMap; print(repr({name}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout == "''\n"


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_limit_that_is_none(limit: str) -> None:
    done = backtrace("--pid", str(os.getpid()), "-n", limit)
    assert done.status == 2
    assert "not a number of frames" in done.errors or "expected one argument" in done.errors


def test_setting_that_forbids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The line names the setting for the user's own processes; for those of others it would be wrong."""
    setting = tmp_path / "ptrace_scope"
    setting.write_text("1\n", encoding="ascii")
    monkeypatch.setattr(ptrace, "_SCOPE", setting)
    reason = "kernel.yama.ptrace_scope is 1, which permits it to parents of the process and to root"
    assert ptrace.not_permitted(os.getpid()) == f"not permitted: {reason}"
    setting.write_text("0\n", encoding="ascii")
    assert ptrace.not_permitted(os.getpid()) == "not permitted"
    if os.geteuid() == 0:
        tmp_path.chmod(0o755)
        setting.write_text("1\n", encoding="ascii")
        done = unprivileged("--pid", str(os.getpid()))
        assert only_line(done.errors).endswith(": not permitted")
