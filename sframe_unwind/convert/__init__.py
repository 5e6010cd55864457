"""Files with unwind data of one kind made from files with another."""

from __future__ import annotations
