"""Measures speed, always against the peer in the same run: `python -m bench`, one module per part."""
