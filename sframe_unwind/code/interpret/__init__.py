"""Interprets functions abstractly: the values of registers and stack slots before each instruction.

It offers :class:`interpretation.Interpreter`, which makes a :class:`interpretation.Run`; :func:`walk.walk`, which
yields its states; and :class:`effects.Effects`, the registers that a callee may change.  It does not depend on unwind
rules.

Code is *certain* if a path from the function's entry leads to it whose jumps have known targets.  Other code is only
*guessed*: after a trap, or at a possible target of a jump by a table.
"""
