"""The sample whose stack is deep."""

from __future__ import annotations

from pathlib import Path

from bench.report import Unavailable
from tests.samples.build import BuildError, build
from tools.binutils import ToolchainUnavailable

FRAMES = 20_000
"""How many frames the stack has at least."""

DEPTH = FRAMES * 4 // 5 + 100
"""The sample's argument: every fourth level takes two frames, and some are left while the measurements step."""


def recursion(variant: str, pie: bool = True) -> Path:
    """Return the path of the sample that recurs.

    :raises Unavailable: it cannot be built here.
    """
    try:
        return build("recursion", "amd64", 3, variant, pie)
    except (ToolchainUnavailable, BuildError) as error:
        raise Unavailable(str(error)) from error
