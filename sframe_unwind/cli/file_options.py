"""Options that name the places of the files that a process had mapped."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from sframe_unwind.arch import Arch
from sframe_unwind.cli.file_name import file_name
from sframe_unwind.cli.status import complain
from sframe_unwind.process.files import DEBUG_FOLDER, Files


def add_file_arguments(parser: argparse.ArgumentParser, debug_dir: str) -> None:
    """Add ``--sysroot``, ``--debug-dir`` and ``--debuginfod``.

    :param debug_dir: the help of ``--debug-dir``.
    """
    parser.add_argument("--sysroot", metavar="FOLDER", type=file_name, help="look for files below this folder first")
    add_debug_arguments(parser, debug_dir, "executables, libraries and debug files that are missing")


def add_debug_arguments(parser: argparse.ArgumentParser, debug_dir: str, downloaded: str) -> None:
    """Add ``--debug-dir`` and ``--debuginfod``.

    :param debug_dir: the help of ``--debug-dir``.
    :param downloaded: what is downloaded, for the help of ``--debuginfod``.
    """
    parser.add_argument("--debug-dir", metavar="FOLDER", type=file_name, action="append", help=debug_dir)
    parser.add_argument(
        "--debuginfod",
        action="store_true",
        help=f"download {downloaded}, by build ID, from the servers that DEBUGINFOD_URLS names",
    )


def found_files(
    options: argparse.Namespace,
    arch: Arch,
    roots: Sequence[str],
    debug_folders: Sequence[str] = (),
    lines: bool = False,
) -> Files:
    """Return an object that finds the files.

    :param roots: folders that paths are relative to, in order of preference; ``""`` is the root of the file system.
    :param debug_folders: more folders with files by build ID, if the user names none.
    :param lines: whether source lines are wanted.
    """
    below = [root + DEBUG_FOLDER for root in roots if root]
    folders = options.debug_dir or [*below, DEBUG_FOLDER, *debug_folders]
    download = None
    if options.debuginfod:
        from sframe_unwind.process.debuginfod import Debuginfod  # the HTTP client takes long to import

        download = Debuginfod(os.environ, complain).fetch
    machine = arch.elf_machine, arch.byteorder
    return Files(roots=roots, debug_folders=folders, machine=machine, report=complain, lines=lines, download=download)
