"""Tests of ``lint``: every rule, every producer, every profile."""
