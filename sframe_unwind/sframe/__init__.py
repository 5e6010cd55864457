"""Layer 1, the bytes: one module per on-disk record.

The three versions of the format are normalised into one form here, so that nothing later asks for the version.
"""
