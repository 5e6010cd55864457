"""Core files and running processes, read without a debugger, and the stacks of their threads."""
