"""Turns bytes into instructions with known effects.

It offers :class:`lifting.Lifter`, which makes an :class:`instruction.Instruction`;
:class:`disassembly.Disassembler`, which makes its text; and :mod:`machines`, the facts that VEX lacks or has wrong.
It does not depend on files or on states of the interpretation.
"""
