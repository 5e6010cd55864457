"""The file to import in LLDB: ``command script import .../lldb_plugin/sframe_lldb.py``, or from ``~/.lldbinit``.

It makes this package and the core importable, in a checkout or in the site-packages of any environment, and starts the
plugin.  LLDB finds classes by name only in modules that were imported with that command, so the classes are named
here.
"""

import sys
from pathlib import Path

_HOME = Path(__file__).resolve().parent.parent
# The core is beside this package in a checkout, and above it in an installation.
_CORE = next((folder for folder in (_HOME, *_HOME.parents) if (folder / "sframe_unwind").is_dir()), _HOME)
_PLACES = [str(folder) for folder in dict.fromkeys((_HOME, _CORE))]
# First in the path during the import, so that the files beside this one are used even if another copy is installed;
# last afterwards, so that no other file there hides a module of LLDB's own Python.
sys.path[:0] = _PLACES
try:
    from lldb_plugin import plugin
    from lldb_plugin.entry import (  # noqa: F401
        Backtrace,
        Compare,
        Convert,
        Disassemble,
        Explain,
        Generate,
        Mode,
        SFrameStopHook,
        Status,
        Strict,
        Tasks,
    )
finally:
    del sys.path[: len(_PLACES)]
    sys.path += _PLACES


def __lldb_init_module(debugger, _internal_dict):  # type: ignore[no-untyped-def]  # LLDB's name for it
    plugin.start(debugger)
