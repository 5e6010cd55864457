"""Long sessions of LLDB."""
