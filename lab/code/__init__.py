"""Campaigns against the proofs by machine code: execution, random functions, changed rows."""
