"""GDB plugins that walk frames in the same way as pwndbg, gdb-dashboard and GEF, which are in no package index.

Each calls the same functions of GDB as its model, at the same events and in the same order, but prints other text.
"""
