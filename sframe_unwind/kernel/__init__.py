"""Stacks of Linux kernels: what their entry code keeps on the stack, and their tasks."""
