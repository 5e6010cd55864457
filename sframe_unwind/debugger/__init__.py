"""Code shared by the GDB plugin and the LLDB plugin: settings, commands, and opening of modules."""
