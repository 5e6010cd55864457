"""Checks unwind tables against machine code: the code is interpreted abstractly, and rules are applied to the states.

The extra ``code`` (pyvex, capstone) is imported by :func:`sframe_unwind.code.lifting.check_installed`, which creating a
:class:`sframe_unwind.code.lifting.Lifter` calls first, and not before.
"""
