"""Tools for building and testing: set-up, toolchains, the demonstration, and the README's picture."""
