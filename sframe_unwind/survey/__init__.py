"""Every ELF file of directories, packages and archives, verified and linted, in a database that goes on where it was.

:mod:`finding` looks for files, and into archives (:mod:`archives`); :mod:`judging` makes one :class:`rows.Surveyed` of
the bytes of a file, in another process or on another machine (:mod:`cluster`); :mod:`store` keeps it by content.
"""

from __future__ import annotations
