"""The commands and settings, and the stacks that they show."""
