"""The file to source in GDB: ``source .../gdb_plugin/sframe_gdb.py``, or from ``~/.gdbinit``.

It makes this package and the core importable wherever they lie, a checkout or any environment's site-packages, and
starts the plugin.  GDB may embed another Python than the one they were installed for; all of it is pure Python.

GDB runs it in the namespace of the user's own ``python`` commands, so no name must remain there.
"""


def _start_sframe() -> None:
    import os
    import sys

    # Not __file__: where one script sources another, GDB 13 leaves it the first one's.
    home = os.path.dirname(os.path.dirname(os.path.realpath(sys._getframe().f_code.co_filename)))
    # The core is beside this package in a checkout, and above it where it was installed.
    core = home
    while not os.path.isdir(os.path.join(core, "sframe_unwind")) and core != os.path.dirname(core):
        core = os.path.dirname(core)
    if not os.path.isdir(os.path.join(core, "sframe_unwind")):
        core = home
    places = list(dict.fromkeys((home, core)))
    # First while it is imported, so that what lies beside this file is what runs, even where another copy is installed;
    # last afterwards, so that nothing else that lies there hides a module of GDB's own Python.
    sys.path[:0] = places
    try:
        from gdb_plugin import plugin
    finally:
        del sys.path[: len(places)]
        sys.path += places
    plugin.start()


_start_sframe()
del _start_sframe
