"""Runs the command line for ``python -m sframe_unwind``."""

from __future__ import annotations

import sys

from sframe_unwind.cli import main

sys.exit(main())
