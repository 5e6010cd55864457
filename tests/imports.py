"""The import statements of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]


class Import(NamedTuple):
    """An imported module."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def imports_of(path: Path, module: str) -> Iterator[Import]:
    """Yield the imports of a file, lazy ones too.

    :param module: the name of its module.
    """
    return (Import(module, imported, line) for imported, line in _imported(path))


@cache
def _imported(path: Path) -> tuple[tuple[str, int], ...]:
    """Return the imported modules and their lines.  Modules that many tests import are asked for again and again."""
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                place = CHECKOUT / full.replace(".", "/")
                is_module = place.is_dir() or place.with_suffix(".py").is_file()
                found.append((full if is_module else str(node.module), node.lineno))
        elif isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
    return tuple(found)
