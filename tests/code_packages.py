"""The packages of the extra ``code`` for a debugger whose Python is not the one of this environment.

A user installs them there.  The whole folder of this environment's packages would also have its debuggers' modules.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_ROOTS = ("pyvex", "capstone")


@contextmanager
def code_packages() -> Iterator[str]:
    """Yield a folder with links to the packages of the extra and all that they need, for ``PYTHONPATH``."""
    with tempfile.TemporaryDirectory(prefix="sframe-extra-") as folder:
        for name in sorted(_needed(*_ROOTS)):
            _link(name, Path(folder))
        yield folder


def _needed(*names: str) -> set[str]:
    """Return the names of installed distributions, and of those that they require."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        try:
            requires = distribution(name).requires or ()
        except PackageNotFoundError:
            continue  # not for this machine, or for another extra
        if name not in found:
            found.add(name)
            waiting += [_name(line) for line in requires if "extra ==" not in line]
    return found


def _name(requirement: str) -> str:
    """Return the name at the start of a requirement such as ``bitstring<5``."""
    end = next((at for at, letter in enumerate(requirement) if not (letter.isalnum() or letter in "-_.")), None)
    return requirement[:end]


def _link(name: str, folder: Path) -> None:
    found = distribution(name)
    tops = {Path(str(file)).parts[0] for file in found.files or ()}
    for top in tops - {"..", "__pycache__"}:
        link = folder / top
        if not link.exists():
            link.symlink_to(Path(str(found.locate_file(top))).resolve())
