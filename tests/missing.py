"""What a test does when something it needs is not on this machine: the one place that decides.

On a user's machine the test is skipped, and says what is missing.  Where the environment variable ``CI`` is set, as the
services set it, a package, debugger, emulator or browser that is not there is a failure: nobody reads what was skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NoReturn

import pytest

from tools.binutils import ToolchainUnavailable

IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")


def absent(what: str) -> NoReturn:
    """End the test: a package, debugger, emulator or browser is not installed.

    :param what: what is missing, and what stays untested.
    """
    if IN_CI:
        raise pytest.fail.Exception(f"{what} (CI is set: what is missing is a failure)", pytrace=False)
    raise pytest.skip.Exception(what, allow_module_level=True)


def not_on_this_system(why: str) -> NoReturn:
    """End the test: the kernel of this machine does not do what it tests, and no package changes that."""
    raise pytest.skip.Exception(why)


def package_needed(name: str) -> None:
    """End the test, or leave out the module that calls this while it is imported, where a package is not installed."""
    if find_spec(name) is None:
        absent(f"the package {name} is not installed: what it compares with stays untested")


@contextmanager
def toolchain_needed() -> Iterator[None]:
    """End the test where the block cannot have its compiler, assembler or emulator."""
    try:
        yield
    except ToolchainUnavailable as error:
        absent(str(error))
