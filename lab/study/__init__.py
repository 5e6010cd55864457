"""A study of real programs under ``perf record``: with and without frame pointers, unwound by each method.

    python -m lab.study [NAME ...]

Sources of Debian are built with SFrame by GCC and binutils, and kept in ``.cache/study``.  Python and the C++ compiler
are Debian's, as they are installed.  It prints the table of ``docs/perf.md``, what stops SFrame and DWARF, and the
versions.
"""
