"""Finds mutable state at the level of a module: variables that outlive every object of the program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_CONTAINERS = ("set", "dict", "list", "defaultdict", "deque", "Counter", "WeakKeyDictionary", "WeakSet")
"""Made without contents, these are to get some."""
_COUNTERS = ("count", "iter")
_CACHES = ("cache", "lru_cache")


def mutable_state(tree: ast.Module, classes: frozenset[str]) -> Iterator[str]:
    """Yield the names of a module's variables that can change, and of its functions that keep their results.

    These are names in lower case, empty containers, locks and other objects of classes with methods; in functions,
    names that ``global`` declares.

    :param classes: the classes of the project whose objects can change.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(_name(decorator) in _CACHES for decorator in node.decorator_list):
                yield node.name
            continue
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and (not _is_constant_name(target.id) or _changes(node.value, classes)):
                yield target.id


def _is_constant_name(name: str) -> bool:
    """Return whether a name is in capitals, or that of a type."""
    return name.lstrip("_")[:1].isupper()


def _changes(value: ast.expr | None, classes: frozenset[str]) -> bool:
    """Return whether a value is made to be changed: an empty container, a lock, or an object of some class."""
    if isinstance(value, (ast.List, ast.Dict, ast.Set)):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call):
        return False
    name = _name(value.func)
    is_empty = name in _CONTAINERS and (name == "defaultdict" or not value.args)
    return is_empty or name in _COUNTERS or name in classes or name.endswith("Lock")


def _name(node: ast.expr) -> str:
    """Return the last part of a name, without the arguments of a call."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return str(getattr(node, "attr", getattr(node, "id", "")))
