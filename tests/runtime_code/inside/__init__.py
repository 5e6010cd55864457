"""What runs inside GDB."""
