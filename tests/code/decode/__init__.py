"""The effects of single instructions: the decoders, the tables of machines, and the witness."""
