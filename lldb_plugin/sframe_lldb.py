"""The file to import in LLDB: ``command script import .../lldb_plugin/sframe_lldb.py``, or from ``~/.lldbinit``.

It makes this package and the core importable, in a checkout or in the site-packages of any environment, and starts the
plugin.  LLDB finds classes by name only in modules that were imported with that command, so this module gets the
names of the classes.
"""

import os
import sys

_HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
# The core is beside this package in a checkout, and above it in an installation.
_CORE = _HOME
while not os.path.isdir(os.path.join(_CORE, "sframe_unwind")) and os.path.dirname(_CORE) != _CORE:
    _CORE = os.path.dirname(_CORE)
if not os.path.isdir(os.path.join(_CORE, "sframe_unwind")):
    _CORE = _HOME
_PLACES = list(dict.fromkeys((_HOME, _CORE)))
# First in the path during the import, so that the files beside this one are used even if another copy is installed;
# last afterwards, so that no other file there hides a module of LLDB's own Python.
sys.path[:0] = _PLACES
try:
    from lldb_plugin.loading import loading

    with loading():
        from lldb_plugin.entry import CLASSES, SFrameStopHook  # noqa: F401
        from lldb_plugin.plugin import the_plugin
finally:
    del sys.path[: len(_PLACES)]
    sys.path += _PLACES

globals().update(CLASSES)


def __lldb_init_module(debugger, _internal_dict):  # type: ignore[no-untyped-def]  # LLDB's name for it
    the_plugin().start(debugger)
