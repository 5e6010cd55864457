"""Unwind stack frames from SFrame data: decode, look up, step and walk, without a debugger.

The layers, each importing only those above it:

1. :mod:`sframe_unwind.format` - the bytes, one module per on-disk record;
2. :mod:`sframe_unwind.section` - pc to an immutable :class:`sframe_unwind.rule.Rule`;
3. :mod:`sframe_unwind.step` - rule, registers and memory to the caller's registers;
4. :mod:`sframe_unwind.walk` - the stack over the modules of a process;
5. files, images, the encoder, the texts and the command line.
"""

__version__ = "0.1.0"
