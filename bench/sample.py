"""The sample program with a deep stack."""

from __future__ import annotations

from pathlib import Path

from bench.report import Unavailable
from tests.samples.build import BuildError, build
from tools.binutils import ToolchainUnavailable

FRAMES = 20_000
"""Minimum number of frames of the stack."""

DEPTH = FRAMES * 4 // 5 + 100
"""Argument of the sample.  Every fourth level has two frames; measurements that step leave some frames."""


IN_DEBUGGERS = 10_000
"""The same number for the debuggers, of which each shows the stack many times."""
DEPTH_IN_DEBUGGERS = IN_DEBUGGERS * 4 // 5 + 100


def recursion(variant: str, pie: bool = True) -> Path:
    """Return the path of the recursive sample.

    :raises Unavailable: it cannot be built here.
    """
    try:
        return build("recursion", "amd64", 3, variant, pie)
    except (ToolchainUnavailable, BuildError) as error:
        raise Unavailable(str(error)) from error
