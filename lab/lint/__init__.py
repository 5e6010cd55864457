"""A second implementation of a profile of `lint`, and damaged sections on which both must agree."""
