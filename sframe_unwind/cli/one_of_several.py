"""Doing one of several files: an error of ours in it must not cost what was found in the others."""

from __future__ import annotations

import os
from typing import Callable, TypeVar, Union

from sframe_unwind.cli.status import TRACEBACK, internal_error
from sframe_unwind.verify.inputs import Failure, Input

Item = Union[Input, Failure]
Result = TypeVar("Result")


def guarded(item: Item, work: Callable[[Item], Result]) -> Result | Failure:
    """Return what a function makes of one file; an internal error is the failure of that file alone."""
    try:
        return work(item)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return Failure(item.name, internal_error(error))
