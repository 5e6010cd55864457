"""The file to source in GDB: ``source .../gdb_plugin/sframe_gdb.py``, or from ``~/.gdbinit``.

It makes this package and the core importable wherever they lie, a checkout or any environment's site-packages, and
starts the plugin.  GDB may embed another Python than the one they were installed for; all of it is pure Python.
"""

import sys
from pathlib import Path

# Not __file__: where one script sources another, GDB 13 leaves it the first one's.
_HOME = str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent)
# First while it is imported, so that what lies beside this file is what runs, even where another copy is installed;
# last afterwards, so that nothing else that lies there hides a module of GDB's own Python.
sys.path.insert(0, _HOME)
try:
    from gdb_plugin import plugin
finally:
    sys.path.remove(_HOME)
    sys.path.append(_HOME)

plugin.start()
