"""Unwind stack frames from SFrame data: decode, look up, step and walk, without a debugger.

The layers, each importing only those above it:

1. :mod:`sframe_unwind.sframe` - the bytes, one module per on-disk record;
2. :mod:`sframe_unwind.sframe.section` - pc to an immutable :class:`sframe_unwind.unwind_rule.UnwindRule`;
3. :mod:`sframe_unwind.unwind.step` - rule, registers and memory to the caller's registers;
4. :mod:`sframe_unwind.unwind.walk` - the stack over the modules of a process;
5. files, images, the encoder, the texts and the command line.
"""

__version__ = "0.1.0"
