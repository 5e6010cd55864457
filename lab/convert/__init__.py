"""Studies of what `convert` writes: sizes, layouts, stacks, readers, and tools that rewrite it."""
