"""Rows from the machine code alone: where CFA, return address and frame pointer are before each instruction.

This package uses the same interpretation as the judge of tables, and the judge proves each rule that it finds.
``docs/from-code.md`` has the assumptions of these proofs.
"""
