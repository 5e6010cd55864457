"""Tools for building and testing: set-up, toolchains, real programs, the demonstration, and the README's picture."""
