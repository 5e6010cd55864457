"""Unwinds the frames that GDB asks for."""
