"""Checks unwind tables against machine code: the code is interpreted abstractly, and rules are applied to the states.

Each of its packages imports only those before it: ``decode`` makes instructions from bytes, ``image`` presents files,
``interpret`` finds the states before instructions, ``judge`` applies the rules of tables to the states, and ``rows``
finds rules in them.

The extra ``code`` (pyvex, capstone) is imported when the first :class:`sframe_unwind.code.decode.lifting.Lifter` is
made, by :func:`sframe_unwind.code.decode.lifting.check_installed`.
"""
