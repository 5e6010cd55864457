"""A study of real programs under ``perf record``: with and without frame pointers, unwound by each method.

    python -m tools.study [NAME ...]

Debian's sources are built with SFrame by GCC and binutils; builds are kept in ``.cache/study``.  It prints the table of
``docs/perf.md``, what stops SFrame and DWARF, and the versions.
"""
