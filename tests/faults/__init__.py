"""Failures in a process while a debugger shows its stack: the session must continue in every debugger."""
