"""Checks planted functions independently: QEMU executes them, and pyelftools decodes the rows."""
