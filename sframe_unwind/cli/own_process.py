"""What makes a process faster that runs one command and ends."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

_COLLECT_AFTER = 100_000
"""New objects before the garbage collector looks for circles.  Decoding makes millions of objects, hardly any circle;
at Python's 700, the search takes a sixth of the time of ``verify``."""

_SELDOM_USED = ("bz2", "dataclasses", "inspect", "json", "lzma", "pdb", "traceback")
"""Modules of Python's that are imported when they are first used, which saves a quarter of the time of a short command.
pyelftools imports most of them for its debugging aids, and shutil, which argparse needs, those for compression."""


@contextlib.contextmanager
def own_process() -> Iterator[None]:
    """Run one command, after which the process ends."""
    gc.set_threshold(_COLLECT_AFTER)
    for name in _SELDOM_USED:
        sys.modules.setdefault(name, _Deferred(name))
    try:
        yield
    finally:
        gc.freeze()  # at its end, Python looks for circles in everything once more, which takes 10 ms


class _Deferred(ModuleType):
    """Stands for a module in ``sys.modules`` until an attribute of the module is asked for.

    ``importlib.util.LazyLoader`` does not serve: it loads the module when a second place imports it.
    """

    def __getattr__(self, name: str) -> object:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)
