"""Code that a process makes or loads by itself and registers: with libunwind, or through GDB's JIT interface.

No file of the process describes such code; the process keeps lists in its memory for whoever debugs it.  What they say
becomes :class:`sframe_unwind.unwind.modules.Module` objects, whose rules are those that SFrame rows become.
"""
