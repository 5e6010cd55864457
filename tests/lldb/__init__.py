"""Tests of the LLDB plugin in real LLDBs."""
