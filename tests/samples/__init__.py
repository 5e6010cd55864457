"""Sample programs with SFrame, and what builds them."""
