"""The file to source in GDB: ``source .../gdb_plugin/sframe_gdb.py``, or from ``~/.gdbinit``.

It makes this package and the core importable wherever they lie, a checkout or any environment's site-packages, and
starts the plugin.  GDB may embed another Python than the one they were installed for; all of it is pure Python.

GDB runs it in the namespace of the user's own ``python`` commands, so no name must remain there.
"""


def _start_sframe() -> None:
    import sys
    from pathlib import Path

    # Not __file__: where one script sources another, GDB 13 leaves it the first one's.
    home = Path(sys._getframe().f_code.co_filename).resolve().parent.parent
    # The core is beside this package in a checkout, and above it where it was installed.
    core = next((folder for folder in (home, *home.parents) if (folder / "sframe_unwind").is_dir()), home)
    places = [str(folder) for folder in dict.fromkeys((home, core))]
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
