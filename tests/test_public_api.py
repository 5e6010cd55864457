"""The exports of the package: every name is there, has types, and costs nothing before it is used."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import sframe_unwind
from tests.hanging import HANG

CHECKOUT = Path(__file__).resolve().parents[1]
SECONDS = HANG

IMPORTS_NOTHING = """
import sys
import sframe_unwind
sys.exit(", ".join(name for name in sys.modules if name.startswith(("sframe_unwind.", "elftools"))))
"""

WITHOUT_PYELFTOOLS = """
import sys
sys.modules["elftools"] = None  # importing it fails
import sframe_unwind
for name in sframe_unwind.__all__:
    getattr(sframe_unwind, name)
"""

MISUSE = {
    "sframe_unwind.Section(b'', 0).lookup(0).rule": 'Item "Miss" of "Match | Miss" has no attribute "rule"',
    "sframe_unwind.load(1)": 'Argument 1 to "load" has incompatible type "int"; expected "str | PathLike[str] | bytes"',
    "sframe_unwind.load('file').lookup(0)": '"list[Section]" has no attribute "lookup"',
    "sframe_unwind.step(sframe_unwind.OUTERMOST)": 'Missing positional arguments "arch", "sp", "fp", "read_word"',
    "sframe_unwind.verify_file('file').good": '"Verdict" has no attribute "good"',
    "sframe_unwind.elftools": 'Module has no attribute "elftools"',
}
"""Mistakes of users, and mypy's messages about them."""


def run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-c", program]
    return subprocess.run(
        command, cwd=CHECKOUT, capture_output=True, text=True, timeout=SECONDS, check=False, env={"PYTHONPATH": "."}
    )


def test_the_example_of_the_package_runs() -> None:
    assert doctest.testmod(sframe_unwind).failed == 0
    assert doctest.testmod(sframe_unwind).attempted > 8


@pytest.mark.parametrize("name", sframe_unwind.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(sframe_unwind, name) is not None
    assert name in dir(sframe_unwind)


def test_what_type_checkers_see_is_what_there_is() -> None:
    tree = ast.parse(Path(sframe_unwind.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name: (imported.module, alias.name)
        for imported in block.body
        if isinstance(imported, ast.ImportFrom)
        for alias in imported.names
    }
    assert {*seen, "__version__"} == set(sframe_unwind.__all__)
    for name, (module, original) in seen.items():
        assert getattr(sframe_unwind, name) is getattr(sys.modules[str(module)], original)


def test_other_names_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="module 'sframe_unwind' has no attribute 'nothing'"):
        _ = sframe_unwind.nothing  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_else() -> None:
    assert run(IMPORTS_NOTHING).stderr.strip() == ""


def test_no_name_needs_pyelftools() -> None:
    assert run(WITHOUT_PYELFTOOLS).stderr == ""


def test_mypy_sees_the_types_in_the_file_of_a_user(tmp_path: Path) -> None:
    file = tmp_path / "user.py"
    file.write_text("\n".join(["import sframe_unwind", *MISUSE]), encoding="utf-8")
    options = ("--strict", "--no-error-summary", "--hide-error-codes", "--config-file=", "--cache-dir", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, file],
        cwd=tmp_path,
        env={"MYPYPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith(file.name)]
    assert len(said) == len(MISUSE), done.stdout
    for number, (line, message) in enumerate(zip(said, MISUSE.values()), 2):
        assert line.startswith(f"{file.name}:{number}: error: {message}")
