"""Stacks without a debugger: of core files and of running processes."""
