"""What a process has loaded, read from its memory alone: no files, no pyelftools."""
