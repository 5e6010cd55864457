"""Tests of stacks without a debugger, from core files and running processes."""
