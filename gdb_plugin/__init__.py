"""The GDB plugin: `source` the file sframe_gdb.py of this folder in GDB."""
