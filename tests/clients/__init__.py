"""Programs that use the debuggers for people: IDEs, other plugins, scripts.  What they show has to be what it was.

Each test runs a client's session twice, with the plugin loaded from the init file and without it, and compares all that
came back, line for line.
"""
