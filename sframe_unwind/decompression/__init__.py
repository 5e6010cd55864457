"""Decompresses data of all formats that files have."""
