"""What each command imports: importing everything took longer than most commands run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_command_line import small

PROGRAM = """
import json, sys
from sframe_unwind.cli import main
main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--version"], ("elftools", "sframe_unwind.sframe", "sframe_unwind.cli.")),
        (["dump"], ("multiprocessing", "pickle", "sframe_unwind.cfi", "sframe_unwind.verify", "sframe_unwind.process")),
        (["lookup", "0"], ("multiprocessing", "pickle", "sframe_unwind.verify", "sframe_unwind.process")),
        (["verify"], ("multiprocessing", "sframe_unwind.process", "sframe_unwind.code", "pyvex")),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_command_imports_what_it_needs(tmp_path: Path, arguments: list[str], unwanted: tuple[str, ...]) -> None:
    first, *rest = arguments
    words = [first, str(small(tmp_path / "file")), *rest] if first != "--version" else arguments
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    imported = json.loads(done.stdout.splitlines()[-1])
    found = [name for name in imported for one in unwanted if name == one or name.startswith(f"{one.rstrip('.')}.")]
    # The package of the commands itself is there, with what begins and ends each of them.
    assert set(found) <= {"sframe_unwind.cli.own_process", "sframe_unwind.cli.status"}


SELDOM_USED = ("bz2", "dataclasses", "inspect", "json", "lzma", "pdb", "traceback")


def imported(*arguments: str) -> set[str]:
    """The modules that a command imports, as Python says."""
    command = [sys.executable, "-X", "importtime", "-m", "sframe_unwind", *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return {line.rpartition("|")[2].strip() for line in said.splitlines()}


def test_seldom_used_modules_are_imported_on_use(tmp_path: Path) -> None:
    file = str(small(tmp_path / "file"))
    text = imported("dump", file)
    assert "elftools.construct.debug" in text, "it imports pdb and others for nothing"
    assert text.isdisjoint({*SELDOM_USED, "json.encoder"})
    assert "json.encoder" in imported("dump", file, "--json")


DEFERRED = """
import sys
from sframe_unwind.cli.own_process import own_process
with own_process():
    import dataclasses, inspect, json.decoder
    from traceback import format_exc
    first = inspect
    assert not hasattr(inspect, "no_such_name")
    import inspect
    assert inspect is not first and inspect.signature is first.signature is sys.modules["inspect"].signature
    assert dataclasses.dataclass.__module__ == "dataclasses"
    assert json.loads("[1]") == [1] and issubclass(json.decoder.JSONDecodeError, ValueError)
    try:
        raise KeyError("why")
    except KeyError:
        assert "KeyError: 'why'" in format_exc()
print("done")
"""


def test_deferred_modules_are_the_modules() -> None:
    done = subprocess.run([sys.executable, "-c", DEFERRED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")
