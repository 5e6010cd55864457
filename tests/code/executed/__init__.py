"""An independent judge of planted functions: QEMU executes them, and pyelftools decodes the rows."""
