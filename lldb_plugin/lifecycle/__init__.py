"""Reacts to events: modules come, processes start and stop, LLDB asks for frames."""
