"""Small tools for LLDB's interface: locks, commands, and lines for the user."""
