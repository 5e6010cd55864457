"""Programs that use the debuggers for people: IDEs, other plugins, scripts.  The plugin must not change what they show.

Each test runs a client's session twice, with the plugin loaded from the init file and without it, and compares all
output line by line.
"""
