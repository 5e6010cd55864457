"""Code that a process generates and registers with libunwind, or through GDB's JIT interface.

No file describes such code.  The process keeps lists of its registrations in memory.  This package reads them and makes
a :class:`sframe_unwind.unwind.modules.Module` of each.  Their unwind info becomes the same rules as SFrame rows.
"""
