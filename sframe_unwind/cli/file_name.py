"""The names of files and folders on the command line."""

from __future__ import annotations

import argparse


def file_name(text: str) -> str:
    """Return the name of a file or a folder: the type of such an argument for :mod:`argparse`.

    :raises argparse.ArgumentTypeError: it is empty.  :mod:`pathlib` would take it for the current folder, and the
        system's message, ``No such file or directory``, would follow no name.
    """
    if not text:
        raise argparse.ArgumentTypeError("expected the name of a file or a folder, found ''")
    return text


def input_name(text: str) -> str:
    """Return the name of a file that is read at any offset, which standard input cannot be.

    :raises argparse.ArgumentTypeError: it is empty, or ``-``.
    """
    if text == "-":
        raise argparse.ArgumentTypeError("expected the name of a file, found '-': standard input is not read")
    return file_name(text)
