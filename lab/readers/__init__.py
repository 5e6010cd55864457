"""Readers of SFrame, run on the same sections; ``docs/readers.md`` has the results."""
