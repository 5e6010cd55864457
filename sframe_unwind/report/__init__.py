"""Text and JSON for people and programs."""
