"""Counts in the listings of `show`, compared with readelf and objdump."""
