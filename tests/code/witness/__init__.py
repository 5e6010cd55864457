"""A witness of what the lifter claims: instructions are executed from random states, and each claim must hold."""
