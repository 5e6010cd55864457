"""Sample programs with SFrame data, and the code that builds them."""
