"""Tests of the command line, compared with readelf where it has the same information."""
