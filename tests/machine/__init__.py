"""Tests of the probes of this machine."""
