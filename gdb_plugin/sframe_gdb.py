"""The file to source in GDB: ``source .../gdb_plugin/sframe_gdb.py``, or from ``~/.gdbinit``.

It makes this package and the core importable, whether they are in a checkout or in the site-packages of an environment,
and starts the plugin.  GDB may embed another Python than the one for which they were installed, which does no harm,
because they are pure Python.

GDB runs this file in the namespace of the user's own ``python`` commands, so no name must remain there.
"""


def _start_sframe() -> None:
    import os
    import sys

    # Not __file__: if another script sources this one, __file__ is the path of that script in GDB 13.
    home = os.path.dirname(os.path.dirname(os.path.realpath(sys._getframe().f_code.co_filename)))
    # The core is beside this package in a checkout, and above it where it was installed.
    core = home
    while not os.path.isdir(os.path.join(core, "sframe_unwind")) and core != os.path.dirname(core):
        core = os.path.dirname(core)
    if not os.path.isdir(os.path.join(core, "sframe_unwind")):
        core = home
    places = list(dict.fromkeys((home, core)))
    # During the import, these folders come first, so that the copy beside this file runs even if another is installed.
    # Afterwards they come last, so that no other file in them hides a module of GDB's own Python.
    sys.path[:0] = places
    try:
        from gdb_plugin import plugin
    finally:
        del sys.path[: len(places)]
        sys.path += places
    plugin.start()


_start_sframe()
del _start_sframe
