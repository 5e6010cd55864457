"""Types for numbers in options; argparse uses the name of a type's function in its error messages."""

from __future__ import annotations

import argparse
import os
from typing import Callable


def at_least(least: int, name: str) -> Callable[[str], int]:
    """Return a type of :mod:`argparse` for numbers.

    :param least: the smallest accepted number.
    :param name: name of the number, for the error message.
    """

    def number(text: str) -> int:
        found = int(text)
        if found < least:
            raise ValueError(text)
        return found

    number.__name__ = name  # "argument -j: invalid number of processes value: '0'"
    return number


def process_id(text: str) -> int:
    """Return the number of a process: a type of :mod:`argparse`."""
    return _number(text, "process")


def thread_id(text: str) -> int:
    """Return the number of a thread: a type of :mod:`argparse`."""
    return _number(text, "thread")


def _number(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"expected the number of a {what}, found {text!r}") from error


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the option for the number of worker processes."""
    what = "number of processes"
    jobs = os.cpu_count() or 1
    parser.add_argument("-j", "--jobs", metavar="N", type=at_least(1, what), default=jobs, help=what)
