"""Puts the shells' completions and the manual page into the wheel; see `tools/shell_files.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShellFiles(BuildHookInterface):
    """Hatchling's hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # Hatchling passes it
        """Make the files before the wheel is put together."""
        sys.path.insert(0, self.root)
        from tools.shell_files import write

        folder = Path(self.directory) / "shell-files"
        for place in write(folder):
            build_data["shared_data"][str(folder / place)] = place
