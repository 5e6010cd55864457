"""The interpretation of functions: their paths, what they store and where, and what they call."""
