"""Checks the lifter's claims: instructions are executed from random states, and each claim must hold."""
