"""Failures in a process while a debugger shows its stack; in every debugger, the session continues."""
