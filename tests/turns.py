"""Lets the workers of a run share the work of importing the tests' files for the first time.

pytest rewrites the assertions of each file and keeps the result.  All workers start at once, and import all files.  In
the same order, each of them would rewrite each file.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from tests import missing

Item = TypeVar("Item")


def import_in_turn(checkout: Path, paths: Iterable[Path], worker: int, workers: int) -> None:
    """Import files of tests, so that each worker begins with other ones.

    :param paths: absolute, below the checkout.
    :param worker: number of this worker, from 0.
    :param workers: number of workers.
    """
    modules = [".".join(path.relative_to(checkout).with_suffix("").parts) for path in sorted(paths)]
    for module in rotated(modules, worker, workers):
        # pytest imports a file that fails, or skips its tests, again, and reports it.
        with contextlib.suppress(Exception, *missing.OUTCOMES):
            importlib.import_module(module)


def rotated(items: Sequence[Item], worker: int, workers: int) -> list[Item]:
    """Return the items, beginning with the first of a worker's own part."""
    first = worker * len(items) // workers
    return [*items[first:], *items[:first]]
