"""What is shipped: the wheel and the source distribution, installed where nothing else is."""
