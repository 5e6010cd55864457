"""Rows from the machine code alone: where CFA, return address and frame pointer are before each instruction.

This package uses the same interpretation as the judge of tables, and each rule that it finds is one that the judge
proves.  What that rests on is in ``docs/from-code.md``.
"""
