"""Stops programs at random instructions, and compares their stacks with those of the same build with CFI."""
