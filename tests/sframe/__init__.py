"""Tests of the layers from the bytes to one step, and of the encoder."""
