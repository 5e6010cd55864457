"""The modules that each command imports: importing everything took longer than most commands run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.sections import small

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
    # The package of the commands itself is imported, with the code that begins and ends each of them.
    assert set(found) <= {"sframe_unwind.cli.own_process", "sframe_unwind.cli.status"}
