"""The frames of one thread: LLDB's own, SFrame's, and the choice between them."""
