"""Every module, option and file of this project that a page names exists."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from sframe_unwind import cli

CHECKOUT = Path(__file__).resolve().parents[1]
_COMMAND = re.compile(r"\bpython3? -m ((?:bench|lab|tests|tools|sframe_unwind)\b[\w.]*)([^`\n#|]*)")
_OWN = re.compile(r"\bsframe-unwind (\w+)([^`\n#|]*)")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*)")
_FILE = re.compile(
    r"`((?:bench|conformance|docs|gdb_plugin|lab|lldb_plugin|sframe_unwind|tests|tools)(?:/[\w.-]+)*/?)`"
)
_PLACEHOLDER = "NAME"
"""In a path, a name for the reader to choose."""


def pages() -> dict[str, str]:
    """Return the texts of all pages by their paths; continued lines are joined.

    The list of changes is left out: it also names what older versions had.
    """
    folders = ("", "docs", "conformance", "lab")
    found = [page for folder in folders for page in (CHECKOUT / folder).glob("*.md")]
    texts = {str(page.relative_to(CHECKOUT)): page.read_text(encoding="utf-8") for page in found}
    return {page: text.replace("\\\n", " ") for page, text in texts.items() if page != "CHANGELOG.md"}


def test_modules_to_run_exist_and_have_the_options() -> None:
    missing, known = [], 0
    for page, text in pages().items():
        for module, arguments in _COMMAND.findall(text):
            script = _script(module)
            if script is None:
                missing.append(f"{page}: {module}")
                continue
            known += 1
            options = _parser_options(arguments) if module == "sframe_unwind" else _declared(script)
            missing += [f"{page}: {module} {option}" for option in _OPTION.findall(arguments) if option not in options]
    assert known > 50
    assert not missing


def test_the_command_line_has_the_options() -> None:
    missing, known = [], 0
    for page, text in pages().items():
        for name, arguments in _OWN.findall(text):
            if name in cli.COMMANDS and name not in cli.DEBUGGERS:
                options = _parser_options(name)
                missing += [f"{page}: {name} {each}" for each in _OPTION.findall(arguments) if each not in options]
                known += 1
    assert known > 50
    assert not missing


def test_files_exist() -> None:
    """`tests/test_architecture.py` also checks paths within the core, on the pages for developers."""
    named = [(page, name) for page, text in pages().items() for name in _FILE.findall(text)]
    assert len(named) > 100
    assert not [
        f"{page}: {name}" for page, name in named if _PLACEHOLDER not in name and not (CHECKOUT / name).exists()
    ]


def _script(module: str) -> Path | None:
    """Return the file that ``python -m`` runs; ``None`` if there is no such module."""
    path = CHECKOUT.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__main__.py") if file.exists()), None)


def _declared(script: Path) -> set[str]:
    """Return the texts that look like options in a file and in those beside it, which some files share options with."""
    texts = (file.read_text(encoding="utf-8") for file in script.parent.glob("*.py"))
    return {"--help"}.union(*(re.findall(r'"(--[a-z][a-z0-9-]*)"', text) for text in texts))


def _parser_options(arguments: str) -> set[str]:
    """Return the options of a command of ``sframe-unwind``, which is the first of the arguments."""
    parser = argparse.ArgumentParser()
    cli.COMMANDS[arguments.split()[0]].add_arguments(parser)
    return {option for action in parser._actions for option in action.option_strings}
