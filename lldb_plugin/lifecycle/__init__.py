"""What happens when: modules come, processes start and stop, LLDB asks for frames."""
