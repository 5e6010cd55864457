"""`doctor`: what it finds out about debuggers and kernels, real ones and ones that fail."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.cli import doctor, main
from sframe_unwind.machine import gdb, linux, lldb, running
from sframe_unwind.machine.finding import Finding
from tests import schemas
from tests.gdb import driver
from tests.hanging import HANG
from tests.lldb.debuggers import CHECKOUT, find_own
from tests.lldb.driver import environment
from tests.machine.refusing import REFUSING
from tests.missing import absent

AMX = "Couldn't write extended state status: Bad address"
"""What GDB 13 prints on a processor with AMX where a register or a call is wanted."""
SAID = "It stopped at breakpoint 1."


def fake(folder: Path, *answers: str, version: str = "GNU gdb (GDB) 13.1") -> str:
    """Write a GDB that gives these answers to the probe's commands; return its path."""
    program = folder / "gdb"
    lines = "\n".join(answers)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" && exit\ncat <<.\n{lines}\n.\n', encoding="utf-8"
    )
    program.chmod(0o755)
    return str(program)


def by_name(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    """Return findings of one part of the machine."""
    return {one.name: one for one in findings}


def test_gdb_that_can_neither_call_nor_write(tmp_path: Path) -> None:
    """The probe as it is on a processor with AMX, in the words of Debian 12's GDB."""
    marks = ("@python", "3.11.2", "@start", SAID, "@call", AMX, "@write", AMX, "@end")
    found = by_name(gdb.probe(fake(tmp_path, *marks)))
    assert [one.works for one in found.values()] == [True, True, True, False, False]
    assert found[gdb.CALLS].sentence() == (f"GDB: calls functions: {AMX}; install GDB 18: pip install gdb-for-pwndbg")
    assert found[gdb.WRITES].found == AMX


def test_gdb_that_starts_no_program(tmp_path: Path) -> None:
    refused = "warning: Could not trace the inferior process: Operation not permitted"
    found = by_name(gdb.probe(fake(tmp_path, "@python", "3.6.8", "@start", refused)))
    assert (found[gdb.STARTS].works, found[gdb.STARTS].found) == (False, refused)
    assert found[gdb.PYTHON].works is False  # the plugin needs 3.9
    assert [found[name].works for name in (gdb.CALLS, gdb.WRITES)] == [None, None]


def test_gdb_that_is_too_old_or_ends_by_a_signal(tmp_path: Path) -> None:
    program = fake(tmp_path, "@python", version="GNU gdb (GDB) 12.1")
    Path(program).write_text(f"{Path(program).read_text()}kill -ABRT $$\n")
    found = by_name(gdb.probe(program))
    assert found[gdb.VERSION].works is False
    assert found[gdb.STARTS].found == "ended by SIGABRT"


def test_gdb_that_hangs_or_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SECONDS", 1)
    hanging = tmp_path / "gdb"
    hanging.write_text("#!/bin/sh\nsleep 60\n")
    hanging.chmod(0o755)
    (only,) = gdb.probe(str(hanging))
    assert (only.works, only.found) == (False, f"{hanging}: did not end within 1 seconds")
    hanging.write_text("#!/no/such/interpreter\n")
    (only,) = gdb.probe.__wrapped__(str(hanging))
    assert only.found == f"{hanging}: cannot start: No such file or directory"


@pytest.mark.parametrize("name", ["pypi", "system"])
def test_real_gdb_is_what_the_debugger_alone_does(name: str) -> None:
    debugger = driver.find(name) or absent(f"no GDB ({name})")
    found = by_name(gdb.probe(debugger.path))
    typed = ("break exit", "run", "print (int)getpid()", "print $xmm0.uint128 = 1")
    said = driver.run(
        driver.command_line(
            debugger,
            *("-batch", "-iex", "set breakpoint pending on"),
            *(word for line in typed for word in ("-ex", line)),
            "/bin/true",
            plugin=None,
        )
    )
    assert ("$1 = " in said) == found[gdb.CALLS].works
    assert found[gdb.VERSION].found.startswith(".".join(map(str, debugger.version)))


def test_without_a_compiler_an_existing_program_is_debugged(monkeypatch: pytest.MonkeyPatch) -> None:
    debugger = driver.find("pypi") or absent("no GDB")
    with_compiler = gdb.probe(debugger.path)
    monkeypatch.setenv("PATH", "/nonexistent")
    with running.tiny_program() as program:
        assert program == "/bin/true"
    assert gdb.probe.__wrapped__(debugger.path) == with_compiler


def test_real_lldb_under_the_rules_of_a_container() -> None:
    """Programs start there all the same, which the debugger alone refuses: see test_personality."""
    done = subprocess.run(
        [*REFUSING, sys.executable, "-m", "sframe_unwind", "doctor", "--json"],
        cwd=CHECKOUT,
        env={**environment(find_own()), "SFRAME_UNWIND_LLDB": find_own()},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    schemas.check("doctor", done.stdout)
    found = {(one["about"], one["name"]): one for one in json.loads(done.stdout)["findings"]}
    assert found["LLDB", lldb.STARTS]["works"]
    assert found["LLDB", lldb.FRAMES]["works"]
    for refused in (linux.RANDOMISATION, linux.RECORDS):
        finding = found["Linux", refused]
        assert not finding["works"]
        assert "Operation not permitted" in finding["found"]
        assert finding["remedy"] == "in a container: docker run --security-opt seccomp=unconfined"
    assert found["Linux", linux.SECCOMP]["found"] == "a filter is installed, as in containers"


def test_text_and_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SFRAME_UNWIND_GDB", fake(tmp_path, "@python", "3.11.2", "@start", SAID, "@call", AMX))
    monkeypatch.setenv("SFRAME_UNWIND_LLDB", str(tmp_path / "none"))
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert re.search(rf"^  no  calls functions +{AMX}\n +install GDB 18: pip install ", text, re.MULTILINE)
    assert re.search(r"^  no  version +\S+/none: no such debugger \(SFRAME_UNWIND_LLDB names it\)$", text, re.MULTILINE)
    assert re.search(r"^\d+ of \d+ work$", text.splitlines()[-1])


def test_nothing_to_mend(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: (Finding("GDB", "version", True, "18.1", "not needed"),))
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == "GDB\n  ok  version  18.1\nall of it works\n"


def test_probe_that_cannot_be_made_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")  # without `sleep`, which is attached to
    attaches = by_name(linux.probe())[linux.ATTACHES]
    assert attaches.works is None
    assert attaches.found.startswith("cannot be probed: ")


def test_core_files_are_where_the_kernel_writes_them(tmp_path: Path) -> None:
    crashing = "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (2**20,) * 2); os.abort()"
    subprocess.run([sys.executable, "-c", crashing], cwd=tmp_path, stderr=subprocess.DEVNULL, check=False)
    found = by_name(linux.probe())
    assert found[linux.CORES].works == any(tmp_path.iterdir())


def test_gdb_on_a_processor_with_amx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real GDB, for which the kernel fails as there: it writes general registers, and cannot call a function."""
    debugger = driver.find("system") or absent("no GDB (system)")
    compiler = shutil.which("gcc") or absent("gcc is not installed")
    library = tmp_path / "amx.so"
    source = Path(__file__).with_name("amx.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True, timeout=HANG)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    found = by_name(gdb.probe.__wrapped__(debugger.path))
    assert [found[name].works for name in (gdb.STARTS, gdb.CALLS, gdb.WRITES)] == [True, False, False]
    assert "Bad address" in found[gdb.CALLS].found
