"""Tests of ``sframe-unwind annotate``."""
