"""Tests of decoding, lookup and encoding."""
