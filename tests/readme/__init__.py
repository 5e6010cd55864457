"""The README's commands, run as it shows them."""
