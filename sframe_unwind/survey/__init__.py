"""Verifies and lints every ELF file of directories, packages and archives; a database continues interrupted runs.

:mod:`finding` looks for files, also in archives (:mod:`archives`).  :mod:`judging` makes a :class:`rows.Surveyed` from
the bytes of a file, in another process or on another machine (:mod:`cluster`).  :mod:`store` keeps it by content.
"""

from __future__ import annotations
