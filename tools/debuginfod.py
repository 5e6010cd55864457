"""What keeps debuggers from asking servers for debug information."""

NO_SERVER = "http://127.0.0.1:1"
"""For the variable ``DEBUGINFOD_URLS``: nobody answers there.  LLDB 23.1 of PyPI has a server of its own, which it asks
for each library where the variable is not set, or empty; a minute long for each where the network does not answer."""
