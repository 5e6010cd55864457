"""The import statements of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = (CHECKOUT / full.replace(".", "/")).is_dir() or (
                    CHECKOUT / f"{full.replace('.', '/')}.py"
                ).is_file()
                yield Import(module, full if is_module else str(node.module), node.lineno)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, alias.name, node.lineno)
