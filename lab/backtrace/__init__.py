"""Studies of `backtrace`: its stacks beside those of other tools."""
