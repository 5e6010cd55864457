"""Processes as the system shows them, without a debugger: core files and live ones, and the stacks of their threads."""
