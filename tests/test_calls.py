"""Arguments are named where there are many: a swap of two neighbours of one type would be seen by no type checker."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.imports import imports_of

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGES = ("sframe_unwind", "gdb_plugin", "lldb_plugin", "tools", "bench", "tests", "lab")
MOST = 5
"""Maximum number of positional arguments of a call."""


class Callable(NamedTuple):
    """A class, function or method of the project."""

    module: str
    takes_any_number: bool
    """It has a parameter such as ``*arguments``."""


class File(NamedTuple):
    """What is asked about one file.  The trees of all files together would make each collection of garbage slow."""

    module: str
    defined: tuple[tuple[str, Callable], ...]
    """The classes, functions and methods by name."""
    crowded: tuple[ast.Call, ...]
    """The calls with too many positional arguments."""
    foreign: frozenset[str]
    """The names of modules of others, if there are such calls."""


@cache
def files() -> dict[str, File]:
    """Return the files of the project, by their paths."""
    paths = (path for package in PACKAGES for path in sorted((CHECKOUT / package).rglob("*.py")))
    return {str(path.relative_to(CHECKOUT)): file(path) for path in paths}


def file(path: Path) -> File:
    """Read a file."""
    module = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined: list[tuple[str, Callable]] = []
    crowded: list[ast.Call] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and positional(node) > MOST:
            crowded.append(node)
        elif isinstance(node, ast.FunctionDef):
            defined.append((node.name, Callable(module, node.args.vararg is not None)))
        elif isinstance(node, ast.ClassDef):
            made = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"]
            defined.append((node.name, Callable(module, any(part.args.vararg is not None for part in made))))
    return File(module, tuple(defined), tuple(crowded), frozenset(foreign_names(tree) if crowded else ()))


@cache
def callables() -> dict[str, list[Callable]]:
    """Return the classes, functions and methods of the project by name."""
    found = defaultdict(list)
    for each in files().values():
        for name, one in each.defined:
            found[name].append(one)
    return found


def positional(call: ast.Call) -> int:
    """Return the number of positional arguments, with those of a tuple that is written in the call."""
    return sum(_number(argument) for argument in call.args)


def _number(argument: ast.expr) -> int:
    if isinstance(argument, ast.Starred):
        return len(argument.value.elts) if isinstance(argument.value, (ast.Tuple, ast.List)) else 0
    return 1


def foreign_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a file gives to modules of others, such as ``st`` for ``hypothesis.strategies``."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if (getattr(node, "module", None) or alias.name).partition(".")[0] not in PACKAGES:
                    yield alias.asname or alias.name


def calls(path: str, file: File) -> Iterator[str]:
    """Yield the calls of a file with too many positional arguments, if the project defines what is called."""
    near = {one.imported for one in imports_of(CHECKOUT / path, file.module)} if file.crowded else set()
    near.add(file.module)
    for node in file.crowded:
        if (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in file.foreign
        ):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        called = [
            one for one in callables().get(name, ()) if one.module in near or isinstance(node.func, ast.Attribute)
        ]
        if called and not any(one.takes_any_number for one in called):
            yield f"{path}:{node.lineno}: {ast.unparse(node.func)} with {positional(node)}"


def test_no_call_has_many_positional_arguments() -> None:
    assert [line for path, file in files().items() for line in calls(path, file)] == []


def test_calls_are_counted() -> None:
    (statement,) = ast.parse("f(1, *(2, 3), *more, four=4)").body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert positional(statement.value) == 3
