"""Interprets functions abstractly: the values of registers and stack slots before each instruction.

It offers :class:`interpretation.Interpreter`, which makes a :class:`interpretation.Run`; :func:`walk.walk`, which
yields its states; and :class:`effects.Effects`, the registers that a callee may change.  It knows no unwind rule.
"""
