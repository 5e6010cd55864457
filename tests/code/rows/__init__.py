"""Rows that are made from machine code alone."""
