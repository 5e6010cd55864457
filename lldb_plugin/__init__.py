"""The LLDB plugin: `command script import` the file sframe_lldb.py of this folder in LLDB."""
