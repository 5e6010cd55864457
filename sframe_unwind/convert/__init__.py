"""Converts files: makes unwind data of one kind from the unwind data of another kind."""

from __future__ import annotations
