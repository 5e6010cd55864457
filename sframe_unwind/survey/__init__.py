"""Verifies and lints every ELF file of directories, packages and archives; a database continues interrupted runs.

:mod:`finding` looks for files, and into archives (:mod:`archives`); :mod:`judging` makes one :class:`rows.Surveyed` of
the bytes of a file, in another process or on another machine (:mod:`cluster`); :mod:`store` keeps it by content.
"""

from __future__ import annotations
