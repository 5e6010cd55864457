"""Tests of the readers in `lab/readers` and of their results in `docs/readers.md`."""
