"""``python -m sframe_unwind`` is the command line."""

from __future__ import annotations

import sys

from sframe_unwind.cli import main

sys.exit(main())
