"""The modules that each command imports: importing everything took longer than most commands run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sframe_unwind.cli import COMMANDS, SUMMARIES
from tests.cli.sections import small

PROGRAM = """
import sys
before = set(sys.modules)
from sframe_unwind.cli import main
try:
    main(sys.argv[1:])
except SystemExit:  # argparse prints the help
    pass
after = set(sys.modules)
print(*sorted(after - before))
"""


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--version"], ("argparse", "re", "typing", "traceback", "sframe_unwind.sframe", "sframe_unwind.cli.")),
        (["--help"], ("sframe_unwind.sframe", "sframe_unwind.address", "sframe_unwind.cli.")),
        (
            ["dump"],
            (
                *("json", "multiprocessing", "pathlib", "pickle", "shutil", "tempfile", "traceback"),
                *("zlib", "sframe_unwind.decompression", "sframe_unwind.cli.addresses"),
                *("sframe_unwind.cfi", "sframe_unwind.verify", "sframe_unwind.process"),
            ),
        ),
        (["lookup", "0"], ("multiprocessing", "pickle", "sframe_unwind.verify", "sframe_unwind.process")),
        (
            ["verify"],
            ("multiprocessing", "tempfile", "sframe_unwind.process", "sframe_unwind.code", "pyvex"),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_command_imports_what_it_needs(tmp_path: Path, arguments: list[str], unwanted: tuple[str, ...]) -> None:
    first, *rest = arguments
    words = arguments if first.startswith("-") else [first, str(small(tmp_path / "file")), *rest]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    imported = done.stdout.splitlines()[-1].split()
    assert "sframe_unwind.cli" in imported
    found = [name for name in imported for one in unwanted if name == one or name.startswith(f"{one.rstrip('.')}.")]
    # The package of the commands itself is imported, with the code that begins and ends each of them.
    allowed = {f"sframe_unwind.cli.{name}" for name in ("own_process", "status", "parsing")}
    assert set(found) <= allowed


def test_summaries_are_the_first_lines_of_the_commands() -> None:
    """The help of the program has them without importing the commands."""
    first_lines = {name: (module.__doc__ or "").splitlines()[0] for name, module in COMMANDS.items()}
    assert {name: line[0].lower() + line[1:].rstrip(".") for name, line in first_lines.items()} == SUMMARIES
