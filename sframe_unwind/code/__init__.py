"""Checks unwind tables against machine code: the code is interpreted abstractly, and rules are applied to the states.

Each of its packages imports only those before it: ``decode`` makes instructions from bytes, ``image`` presents files,
``interpret`` finds the states before instructions, and ``judge`` applies the rules of tables to the states.

The extra ``code`` (pyvex, capstone) is imported by :func:`sframe_unwind.code.decode.lifting.check_installed`, which
creating a :class:`sframe_unwind.code.decode.lifting.Lifter` calls first, and not before.
"""
