"""The LLDB plugin in real LLDBs."""
