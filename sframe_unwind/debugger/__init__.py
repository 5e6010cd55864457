"""What the GDB plugin and the LLDB plugin share: settings, commands, and how modules are opened."""
