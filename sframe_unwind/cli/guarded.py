"""Processes one of several files.  A bug of this package in one of them must not cost the results for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, TypeVar, Union

from sframe_unwind import internal_error
from sframe_unwind.cli.status import CANNOT, DONE, INTERNAL_ERROR, OUT_OF_MEMORY
from sframe_unwind.verify.inputs import Failure, Input

Item = Union[Input, Failure]
Result = TypeVar("Result")


def guarded(item: Item, work: Callable[[Item], Result]) -> Result | Failure:
    """Return the result of a function for one file; an internal error only makes this file fail."""
    try:
        return work(item)
    except MemoryError:
        return Failure(item.name, OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a bug of this package
        internal_error.show_traceback(error)
        return Failure(item.name, internal_error.describe(error), is_internal=True)


def status_of(failures: Sequence[Failure]) -> int:
    """Return the exit status that failures require; ``DONE``: there are none."""
    if any(failure.is_internal for failure in failures):
        return INTERNAL_ERROR
    return CANNOT if failures else DONE
