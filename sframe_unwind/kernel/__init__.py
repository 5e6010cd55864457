"""Stacks of Linux kernels: unwinds their entry code, and lists their tasks."""
