"""Tests of the fuzzing in `lab/fuzz`, and short runs of it."""
