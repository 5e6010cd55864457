"""Tests of the wheel and the source distribution, installed into empty environments."""
