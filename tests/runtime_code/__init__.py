"""Tests with code that programs generate or load by themselves, and register for debuggers."""
