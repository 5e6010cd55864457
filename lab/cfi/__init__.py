"""Decoders of DWARF CFI, compared on real libraries."""
